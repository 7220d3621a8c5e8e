// Calls of `gpurota top` to the daemon. A call blocks until the answer, but only for a limited
// time; it is repeated for the next picture. One thread.
#pragma once

#include "cli/commands.h"
#include "cli/top/keys.h"
#include "cli/top/model.h"

#include <optional>

namespace gpurota::cli::topview {

class Source {
 public:
  explicit Source(const Context& context);

  // Gets all that a picture shows. After an error the next call reconnects.
  Result<Answers> ask();
  // The result of the action, as text; or why the daemon refused it.
  Result<std::string> carry_out(const Action& action) const;

 private:
  Result<Answers> ask_all();

  client::Location location_;
  std::optional<client::Connection> connection_;
  client::milliseconds patience_;
};

}  // namespace gpurota::cli::topview
