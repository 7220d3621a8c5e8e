// Answers that are the same for many callers, kept as text until something that they show changes.
//
// Code that changes what a view shows calls changed(). A thousand pages that ask every second then
// share one text. Texts are kept per class of viewers, since privacy decides what each class sees.
// State thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

namespace gpurota::daemon {

class SharedAnswers final {
 public:
  using Text = std::shared_ptr<const std::string>;
  enum class About { kStatus, kProcesses };
  // Texts that are kept at a time; each may have a few hundred kilobytes.
  static constexpr std::size_t kMost = 64;

  void changed() { ++version_; }

  // `viewer`: empty for viewers who see everything. `grants`: a count of the changes that no code
  // reports with changed(), such as changes of the grant book. A text is reused only while the
  // count is the same. `make` returns the text.
  template <class Make>
  Text get(About about, std::optional<uid_t> viewer, std::uint64_t grants, const Make& make) {
    const Version now{version_, grants};
    const auto it = kept_.find({about, viewer});
    if (it != kept_.end() && it->second.version == now) return it->second.text;
    if (it == kept_.end() && kept_.size() >= kMost) kept_.clear();
    Kept& kept = kept_[{about, viewer}];
    kept = {now, std::make_shared<const std::string>(make())};
    return kept.text;
  }

 private:
  using Version = std::pair<std::uint64_t, std::uint64_t>;
  struct Kept {
    Version version;
    Text text;
  };

  std::uint64_t version_ = 0;
  std::map<std::pair<About, std::optional<uid_t>>, Kept> kept_;
};

}  // namespace gpurota::daemon
