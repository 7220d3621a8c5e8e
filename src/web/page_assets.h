// The files of the web page in this program: compressed, and plain for a client that does not
// accept gzip. The build makes them (tools/build_page.py). A program built without npm has none.
// Any thread.
#pragma once

#include <string_view>
#include <vector>

namespace gpurota::web {

struct PageAsset {
  std::string_view path;  // "/page.js"
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::string_view gzip;
  std::string_view plain;
};

const std::vector<PageAsset>& page_assets();

}  // namespace gpurota::web
