// Answers of another machine, and foreign text for the page: the page gets one line of JSON in
// UTF-8 without anything that a browser could take for markup.
#include "base/text.h"
#include "web/fleet.h"
#include "web/history_json.h"
#include "web/page_json.h"
#include "web/totals.h"

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace gpurota;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_json(const std::string& text) {
  require(valid_utf8(text) == text);
  require(text.find_first_of("<>&\n\r") == text.npos);
}

void check_totals(const web::Totals& totals) {
  require(totals.free + totals.shared + totals.full + totals.unavailable == totals.gpus);
  require(totals.gpus >= 0 && totals.free >= 0 && totals.waiting >= 0);
  require(!totals.users || totals.users->size() <= web::Totals::kMostUsers);
  require(totals.models.size() <= web::Totals::kMostModels);
  const std::string text = web::totals_json(totals);
  check_json(text);
  // Text that is passed on can be parsed again, with the same result, unless escapes have made the
  // text too long.
  if (text.size() > web::Totals::kMostBytes) return;
  const auto again = web::parse_totals(text);
  require(again.has_value() && web::totals_json(*again) == text);
}

// Every text that a user, a driver or a daemon can choose.
void check_page(const std::string& foreign) {
  web::Snapshot snapshot;
  snapshot.info.version = foreign;
  snapshot.info.driver_version = foreign;
  proto::Gpu& gpu = snapshot.status.gpus.emplace_back();
  gpu.uuid.value = gpu.name = foreign;
  gpu.label = foreign;
  gpu.clock_limits = {foreign};
  proto::Lease& lease = snapshot.status.leases.emplace_back();
  lease.user = foreign;
  lease.as_name = foreign;
  lease.gpus.emplace_back().label = foreign;
  lease.gpus.back().turn = foreign;
  proto::Request& request = snapshot.queue.requests.emplace_back();
  request.user = request.reason = foreign;
  request.gpu_type = foreign;
  snapshot.status.bookings.emplace().emplace_back().labels = {foreign};
  proto::Events::Reply events;
  events.events.emplace_back().message = foreign;
  proto::History::Reply history;
  history.gpus.emplace_back().label = foreign;
  proto::Report::Reply report;
  for (const web::PageLevel level : {web::PageLevel::kTotals, web::PageLevel::kNames}) {
    check_json(web::now_json(snapshot, WallTime(), level));
    check_json(web::events_json(events, level));
    check_json(web::turns_json(snapshot, WallTime(), level));
    check_json(web::hours_json(report, report, snapshot.status.gpus, level));
  }
  check_json(web::history_json(history));
  check_json(web::totals_json(web::totals_of(snapshot, true)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (const auto totals = web::parse_totals(input)) {
    check_totals(*totals);
  } else {
    require(!totals.error().message.empty());
  }
  if (const auto peer = web::parse_peer(input)) {
    require(peer->url.starts_with("http://") || peer->url.starts_with("https://"));
    require(peer->url.ends_with('/') &&
            peer->url.find_first_of(" \r\n\"<>@#?") == std::string::npos);
    require(!peer->name.empty() && peer->name.find_first_of(" \r\n\"<>/") == std::string::npos);
  }
  check_page(input);
  return 0;
}
