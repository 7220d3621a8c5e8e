#include "web/page_assets.h"

namespace gpurota::web {

// For a build with GPUROTA_WEB_PAGE=OFF.
const std::vector<PageAsset>& page_assets() {
  static const std::vector<PageAsset> none;
  return none;
}

}  // namespace gpurota::web
