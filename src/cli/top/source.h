// Calls of `gpurota top` to the daemon. A call blocks until the answer, but not long: a question
// that is not answered in time is asked again for the next picture. One thread.
#pragma once

#include "cli/commands.h"
#include "cli/top/keys.h"
#include "cli/top/model.h"

#include <optional>

namespace gpurota::cli::topview {

class Source {
 public:
  explicit Source(const Context& context);

  // All that a picture shows. After an error the next call connects anew.
  Result<Answers> ask();
  // The result of the action, for people; or why the daemon has refused it.
  Result<std::string> carry_out(const Action& action) const;

 private:
  Result<Answers> ask_all();

  client::Location location_;
  std::optional<client::Connection> connection_;
  client::milliseconds patience_;
};

}  // namespace gpurota::cli::topview
