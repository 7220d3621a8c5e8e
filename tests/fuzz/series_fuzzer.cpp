// A row of the history, as a damaged disk or another version may have left it: whatever is parsed
// from it stays the same when written and read again.
#include "series/row.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using namespace gpurota;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view row(reinterpret_cast<const char*>(data), size);
  const std::vector<series::Entry> entries = series::decode(row);
  // Each entry takes at least one byte of the row, so a short row cannot decode to a long list.
  require(entries.size() <= size);
  const std::vector<series::Entry> again = series::decode(series::encode(entries));
  require(again == series::decode(series::encode(again)));
  require(again.size() == entries.size());
  for (std::size_t i = 0; i < again.size(); ++i) require(again[i].subject == entries[i].subject);
  return 0;
}
