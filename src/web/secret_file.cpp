#include "web/secret_file.h"

#include "base/fd.h"
#include "base/read_all.h"

#include <algorithm>
#include <cctype>
#include <cerrno>

#include <fcntl.h>

namespace gpurota::web {

Result<std::string> read_secret(const std::string& option, const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(option + ": cannot open " + path, errno);
  std::string text = read_all(file.get(), 4096).value_or(std::string());
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  // The secret is sent in a header: a newline in it would begin another header.
  const bool plain =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 127; });
  if (text.size() >= kLeastSecret && plain) return text;
  return fail(Code::kInvalid, option + ": " + path +
                                  " needs a secret of at least 16 characters, without spaces: "
                                  "openssl rand -hex 32 prints one");
}

}  // namespace gpurota::web
