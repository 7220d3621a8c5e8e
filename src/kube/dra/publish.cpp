#include "kube/dra/publish.h"

#include "base/text.h"
#include "kube/api/json_internal.h"
#include "kube/dra/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace gpurota::kube {
namespace {

constexpr ApiClient::Milliseconds kCallPatience{10000};
constexpr int kMostRounds = 5;
// How long a watch lasts: the server ends it then, and a little later we close the connection.
constexpr std::chrono::seconds kWatchTime{300};
constexpr ApiClient::Milliseconds kWatchPatience{330000};
constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";
constexpr int kGone = 404, kConflict = 409, kExpired = 410, kInvalidObject = 422,
              kServerError = 500;
// The first Kubernetes 1.x whose scheduler gives a device with counters to several claims.
constexpr int kMinorWithCounters = 36;

struct There {
  std::map<std::string, std::string> versions;
  std::int64_t generation = 0;  // the highest generation
  std::string list_version;
};

std::string slices_of(const std::string& node) {
  return fmt::format("{}?fieldSelector=spec.driver%3D{}%2Cspec.nodeName%3D{}", kSlices, kDriverName,
                     node);
}

Result<There> read_slices(ApiClient& api, const std::string& node) {
  const std::string path = slices_of(node);
  GPUROTA_ASSIGN_OR_RETURN(ApiAnswer answer, api.call("GET", path, {}, kCallPatience));
  // 410: the version of the list is too old for the API server. Repeat the call once.
  if (answer.status == kExpired) {
    GPUROTA_ASSIGN_OR_RETURN(answer, api.call("GET", path, {}, kCallPatience));
  }
  if (!answer.good()) return tl::unexpected(error_of(answer, "list ResourceSlices"));
  const Json list = parse_json(answer.body);
  if (!at(list, "items").is_array()) {
    return fail(Code::kUnavailable, "the API server's list of ResourceSlices is no list");
  }
  There there;
  there.list_version = text_at(at(list, "metadata"), "resourceVersion");
  for (const Json& item : list_at(list, "items")) {
    const Json& metadata = at(item, "metadata");
    const Json& generation = at(at(at(item, "spec"), "pool"), "generation");
    // A server that ignores field selectors would list slices of other nodes and drivers too.
    const bool ours = text_at(at(item, "spec"), "driver") == kDriverName &&
                      text_at(at(item, "spec"), "nodeName") == node;
    if (!ours || text_at(metadata, "name").empty()) continue;
    there.versions[text_at(metadata, "name")] = text_at(metadata, "resourceVersion");
    if (generation.is_number_integer()) {
      there.generation = std::max(there.generation, generation.get<std::int64_t>());
    }
  }
  return there;
}

Result<std::string> read_node_uid(ApiClient& api, const std::string& node) {
  GPUROTA_ASSIGN_OR_RETURN(const ApiAnswer answer,
                           api.call("GET", "/api/v1/nodes/" + node, {}, kCallPatience));
  if (!answer.good()) return tl::unexpected(error_of(answer, "read the node " + node));
  std::string uid = text_at(at(parse_json(answer.body), "metadata"), "uid");
  if (uid.empty()) return fail(Code::kUnavailable, "the API server's answer is not a node");
  return uid;
}

// Whether the scheduler's version counts a device with counters once, however many claims have it.
// A server without such counters drops them from the slices written. False if the driver is not
// allowed to read the version.
Result<bool> counts_shared_devices(ApiClient& api) {
  GPUROTA_ASSIGN_OR_RETURN(const ApiAnswer answer, api.call("GET", "/version", {}, kCallPatience));
  if (answer.status >= kServerError) {
    return tl::unexpected(error_of(answer, "read the API server's version"));
  }
  const Json version = parse_json(answer.body);
  const std::string minor = text_at(version, "minor");  // "36", "36+"
  int number = 0;
  std::from_chars(minor.data(), minor.data() + minor.size(), number);
  return answer.good() && text_at(version, "major") == "1" && number >= kMinorWithCounters;
}

bool has_counters(const Json& spec) { return !list_at(spec, "sharedCounters").empty(); }

std::string slice_name(const std::string& node, std::size_t index) {
  return fmt::format("{}-{}-{}", node, kDriverName, index);
}

Json slice_of(const std::string& name, const std::string& node, const std::string& node_uid,
              const std::string& spec) {
  const Json owner = {{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"name", node},
                      {"uid", node_uid},
                      {"controller", true}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", {{"name", name}, {"ownerReferences", Json::array({owner})}}},
          {"spec", parse_json(spec)}};
}

struct Written {
  std::string version;  // the new version; empty: changed meanwhile by somebody else, read again
  bool has_counters = true;  // false: it had counters, which the API server does not accept
};

Result<Written> write_slice(ApiClient& api, Json slice, const There& there) {
  const std::string name = text_at(at(slice, "metadata"), "name");
  const auto before = there.versions.find(name);
  const bool is_new = before == there.versions.end();
  if (!is_new) slice["metadata"]["resourceVersion"] = before->second;
  GPUROTA_ASSIGN_OR_RETURN(
      const ApiAnswer answer,
      api.call(is_new ? "POST" : "PUT", is_new ? kSlices : fmt::format("{}/{}", kSlices, name),
               slice.dump(-1, ' ', false, Json::error_handler_t::replace), kCallPatience));
  if (answer.status == kConflict || (!is_new && answer.status == kGone)) return Written{};
  const bool counts = has_counters(at(slice, "spec"));
  if (counts && answer.status == kInvalidObject) return Written{.has_counters = false};
  if (!answer.good()) return tl::unexpected(error_of(answer, "publish the ResourceSlice " + name));
  const Json written = parse_json(answer.body);
  return Written{.version = text_at(at(written, "metadata"), "resourceVersion"),
                 .has_counters = !counts || has_counters(at(written, "spec"))};
}

bool all_there(const There& there, const PublishedSlices& known) {
  return std::all_of(known.versions.begin(), known.versions.end(),
                     [&](const auto& each) { return there.versions.contains(each.first); });
}

// Writes the current slices over the existing ones. Slices left in `there` must be deleted. False:
// read the existing slices again first.
Result<bool> write_slices(ApiClient& api, const std::string& node, There& there,
                          PublishedSlices& now) {
  now.versions.clear();
  const std::vector<std::string> specs =
      slice_specs(now.devices, node, now.generation, now.counters);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string name = slice_name(node, i);
    GPUROTA_ASSIGN_OR_RETURN(const Written written,
                             write_slice(api, slice_of(name, node, now.node_uid, specs[i]), there));
    if (!written.has_counters) now.takes_counters = false;
    if (!written.has_counters || written.version.empty()) return false;
    now.versions[name] = written.version;
    there.versions.erase(name);
  }
  return true;
}

// nullopt: read everything again. Sets in `known` whether the API server accepts counters.
Result<std::optional<PublishedSlices>> publish_once(ApiClient& api, const std::string& node,
                                                    const std::vector<SliceDevice>& wanted,
                                                    PublishedSlices& known) {
  GPUROTA_ASSIGN_OR_RETURN(There there, read_slices(api, node));
  if (!known.takes_counters) {
    GPUROTA_ASSIGN_OR_RETURN(known.takes_counters, counts_shared_devices(api));
  }
  PublishedSlices now = known;
  now.list_version = there.list_version;
  now.counters = *known.takes_counters;
  if (known.generation > 0 && there.versions == known.versions && wanted == known.devices &&
      now.counters == known.counters) {
    return std::optional(std::move(now));
  }
  // A slice is deleted with its owner, the node. A node that was deleted and made anew has another
  // uid.
  if (now.node_uid.empty() || !all_there(there, known)) {
    GPUROTA_ASSIGN_OR_RETURN(now.node_uid, read_node_uid(api, node));
  }
  now.devices = wanted;
  now.generation = std::max(there.generation, known.generation) + 1;
  GPUROTA_ASSIGN_OR_RETURN(const bool is_written, write_slices(api, node, there, now));
  known.takes_counters = now.takes_counters;
  if (!is_written) return std::optional<PublishedSlices>();
  // Extra slices: there were more before, or somebody has copied one.
  for (const auto& [name, version] : there.versions) {
    GPUROTA_ASSIGN_OR_RETURN(
        const ApiAnswer answer,
        api.call("DELETE", fmt::format("{}/{}", kSlices, name), {}, kCallPatience));
    if (!answer.good() && answer.status != kGone) {
      return tl::unexpected(error_of(answer, "delete the ResourceSlice " + display_text(name)));
    }
  }
  return std::optional(std::move(now));
}

}  // namespace

Result<PublishedSlices> publish_slices(ApiClient& api, const std::string& node,
                                       const std::vector<SliceDevice>& wanted,
                                       PublishedSlices known) {
  for (int round = 0; round < kMostRounds; ++round) {
    GPUROTA_ASSIGN_OR_RETURN(auto published, publish_once(api, node, wanted, known));
    if (published) return std::move(*published);
  }
  return fail(Code::kUnavailable,
              fmt::format("somebody else changes the ResourceSlices of {} on {} all the time: see "
                          "whether another gpurota-dra runs there",
                          kDriverName, node));
}

namespace {

// Whether an event of a watch is a change by somebody else.
bool is_change(const Json& event, const PublishedSlices& known) {
  const std::string type = text_at(event, "type");
  if (type == "BOOKMARK") return false;
  const Json& metadata = at(at(event, "object"), "metadata");
  const auto found = known.versions.find(text_at(metadata, "name"));
  if (type == "DELETED") return found != known.versions.end();
  return found == known.versions.end() || found->second != text_at(metadata, "resourceVersion");
}

}  // namespace

Result<bool> wait_for_change(ApiClient& api, const std::string& node, const PublishedSlices& known,
                             const std::atomic<bool>& stop) {
  bool changed = false;
  const auto take = [&](std::string_view line) {
    changed = is_change(parse_json(line), known);
    return !changed;
  };
  const std::string path =
      fmt::format("{}&watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                  slices_of(node), kWatchTime.count(), known.list_version);
  GPUROTA_ASSIGN_OR_RETURN(const ApiAnswer answer, api.follow(path, take, stop, kWatchPatience));
  if (answer.status == kExpired) return true;
  if (!answer.good()) return tl::unexpected(error_of(answer, "watch ResourceSlices"));
  return changed;
}

}  // namespace gpurota::kube
