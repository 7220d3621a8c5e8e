// The files of the web page as they are in this program: compressed, made by the build
// (tools/embed_page.py). None in a program that was built without npm. Any thread.
#pragma once

#include <string_view>
#include <vector>

namespace gpurota::web {

struct PageAsset {
  std::string_view path;  // "/page.js"
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::string_view gzip;
};

const std::vector<PageAsset>& page_assets();

}  // namespace gpurota::web
