#include "kube/endpoint.h"

#include "base/log.h"

#include <fmt/format.h>

#include <utility>

#include <sys/stat.h>

namespace gpurota::kube {
namespace {

constexpr std::chrono::milliseconds kRegisterPatience{5000};
// Kubelet's timeout for this call is 30 s; fillers need less to leave.
constexpr std::chrono::milliseconds kLeasePatience{15000};

std::optional<SocketId> socket_at(const std::string& path) {
  struct stat found;
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return std::nullopt;
  constexpr std::int64_t kSecond = 1000000000;
  return SocketId{found.st_dev, found.st_ino,
                  found.st_ctim.tv_sec * kSecond + found.st_ctim.tv_nsec};
}

}  // namespace

Endpoint::Endpoint(Parts parts, Resource resource, std::string name)
    : parts_(std::move(parts)),
      resource_(resource),
      name_(std::move(name)),
      endpoint_(fmt::format("gpurota-{}.sock", to_string(resource))),
      socket_(parts_.plugins_dir + "/" + endpoint_),
      kubelet_(parts_.plugins_dir + "/kubelet.sock") {}

void Endpoint::check() {
  if (busy_ || !parts_.node.knows_gpus()) return;
  RegistrationFacts facts;
  facts.kubelet = socket_at(kubelet_);
  facts.served = server_ && server_->is_there();
  facts.streams = server_ ? server_->streams() : 0;
  switch (registration_.next(facts, parts_.loop.now())) {
    case Registration::Step::kNothing:
      return;
    case Registration::Step::kServe:
      return serve();
    case Registration::Step::kRegister:
      return register_now(*facts.kubelet);
  }
}

// The old server ends first, because kubelet drops a plugin that is registered twice. Ending it may
// wait, on a worker, for calls that wait for the state thread.
void Endpoint::serve() {
  busy_ = true;
  using Served = Result<std::unique_ptr<DeviceServer>>;
  parts_.sockets.run(
      [this, before = std::exchange(server_, nullptr)]() mutable -> Served {
        before.reset();
        return DeviceServer::listen(socket_, *this, offers_);
      },
      [this](Served served) {
        busy_ = false;
        if (!served) {
          if (!std::exchange(is_refused_, true)) {
            log::error("cannot be a device plugin, trying again",
                       {{"resource", name_}, {"error", served.error().message}});
          }
          return;
        }
        server_ = std::move(*served);
        registration_.on_served();
        check();
      });
}

void Endpoint::register_now(const SocketId& kubelet) {
  busy_ = true;
  parts_.sockets.run(
      [kubelet_socket = kubelet_, endpoint = endpoint_, name = name_] {
        return register_device(kubelet_socket, endpoint, name, kRegisterPatience);
      },
      [this, kubelet](const Result<void>& done) {
        busy_ = false;
        if (done) {
          log::info("kubelet has registered a resource", {{"resource", name_}});
          is_refused_ = false;
          return registration_.on_registered(kubelet, parts_.loop.now());
        }
        registration_.on_refused(parts_.loop.now());
        if (std::exchange(is_refused_, true)) return;
        log::warn("kubelet does not register a resource, trying again",
                  {{"resource", name_}, {"error", done.error().message}});
      });
}

Result<ContainerAnswer> Endpoint::allocate(const Ids& ids) {
  return parts_.questions.ask<ContainerAnswer>([this, ids] {
    auto answer = parts_.node.allocate(resource_, ids);
    if (!answer) {
      log::error("a container is refused devices",
                 {{"resource", name_}, {"error", answer.error().message}});
    }
    parts_.changed();
    return answer;
  });
}

DeviceHandler::Ids Endpoint::prefer(const Ids& available, const Ids& must_include,
                                    std::size_t size) {
  const auto preferred = parts_.questions.ask<Ids>([=, this]() -> Result<Ids> {
    return parts_.node.prefer(resource_, available, must_include, size);
  });
  return preferred.value_or(Ids());
}

Result<void> Endpoint::pre_start(const Ids& ids) {
  const auto order = parts_.questions.ask<LeaseOrder>(
      [this, ids] { return parts_.node.pre_start(resource_, ids); });
  if (!order) return tl::unexpected(order.error());
  const auto lease = make_lease(parts_.daemon, *order, kLeasePatience);
  if (!lease) {
    log::warn("a container has to wait for its lease",
              {{"allocation", order->allocation}, {"error", lease.error().message}});
    return tl::unexpected(Error(lease.error()).context("no lease for this container yet"));
  }
  const auto heard = parts_.questions.ask<bool>([this, id = order->allocation, lease = *lease] {
    parts_.node.on_lease(id, lease);
    parts_.changed();
    return Result<bool>(true);
  });
  if (!heard) return tl::unexpected(heard.error());
  log::info("a container has its lease",
            {{"allocation", order->allocation}, {"lease", to_string(lease->lease_id)}});
  return {};
}

}  // namespace gpurota::kube
