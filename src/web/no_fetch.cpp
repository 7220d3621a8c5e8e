// For a build without libcurl, which can show only this machine.
#include "web/fetch.h"

namespace gpurota::web {

Result<std::unique_ptr<Fetcher>> make_fetcher(Fetcher::Options /*options*/) {
  return fail(
      Code::kUnavailable,
      "--peer: this gpurota-web was built without libcurl, so it cannot ask other machines: "
      "'gpurota status --host' can, by ssh");
}

}  // namespace gpurota::web
