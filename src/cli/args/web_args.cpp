#include "cli/args/web_args.h"

#include "cli/raw.h"

namespace gpurota::cli {

Result<WebOptions> parse_web(const Raw& raw) {
  if (raw.list && raw.end) return fail(Code::kInvalid, "give --list or --end, not both");
  if (raw.json && !raw.list) return fail(Code::kInvalid, "--json is for --list");
  return WebOptions{raw.no_open, raw.list, raw.json, raw.end};
}

}  // namespace gpurota::cli
