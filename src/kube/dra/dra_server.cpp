#include "kube/dra/dra_server.h"

#include "base/text.h"
#include "kube/api/api_client.h"
#include "kube/proto/dra.grpc.pb.h"
#include "kube/proto/dra_health_v1.grpc.pb.h"
#include "kube/proto/dra_health_v1alpha1.grpc.pb.h"
#include "kube/proto/dra_health_v1beta1.grpc.pb.h"
#include "kube/proto/plugin_registration.grpc.pb.h"
#include "kube/streams.h"
#include "kube/unix_server.h"

#include <fmt/format.h>

#include <optional>

#include <grpcpp/grpcpp.h>

namespace gpurota::kube {
namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace wire = dra_health;

// Kubelet's timeout for a call is 45 s.
constexpr std::chrono::seconds kPrepareTime(30);
constexpr int kMostClaimsOfACall = 256;
// The pause between two messages about health: kubelet 1.34 assumes unknown health after 30 s
// without a message; later versions use the time in the message.
constexpr std::chrono::seconds kHealthAgain{10};
constexpr std::chrono::seconds kHealthTimeout{30};

std::string refusal_text(const Error& error) { return status_of(error).error_message(); }

Result<ClaimId> id_of(const v1::Claim& claim) {
  GPUROTA_TRY(check_uid(claim.uid()));
  if (!is_object_name(claim.name()) || !is_object_name(claim.namespace_())) {
    return fail(Code::kInvalid, "kubelet asks for a claim whose name is none of Kubernetes'");
  }
  return ClaimId{claim.uid(), claim.namespace_(), claim.name()};
}

grpc::Status too_many() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          fmt::format("gpurota: more than {} claims at once", kMostClaimsOfACall)};
}

void fill(const Prepared& prepared, v1::NodePrepareResourceResponse& out) {
  for (const PreparedLease& lease : prepared) {
    for (const ClaimDevice& device : lease.devices) {
      v1::Device& shown = *out.add_devices();
      // Kubelet compares these with the requests of a container.
      shown.add_request_names(main_request(device.request));
      shown.set_pool_name(device.pool);
      shown.set_device_name(device.device);
      for (const std::string& name : lease.cdi_devices) shown.add_cdi_device_ids(name);
      if (!device.share_id.empty()) shown.set_share_id(device.share_id);
    }
  }
}

class DraService final : public v1::DRAPlugin::Service {
 public:
  explicit DraService(ClaimHandler& handler) : handler_(handler) {}

  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const v1::NodePrepareResourcesRequest* request,
                                    v1::NodePrepareResourcesResponse* response) override {
    if (request->claims_size() > kMostClaimsOfACall) return too_many();
    const auto deadline = std::chrono::steady_clock::now() + kPrepareTime;
    for (const v1::Claim& claim : request->claims()) {
      v1::NodePrepareResourceResponse& answer = (*response->mutable_claims())[claim.uid()];
      const auto prepared =
          id_of(claim).and_then([&](const ClaimId& id) { return handler_.prepare(id, deadline); });
      if (prepared) {
        fill(*prepared, answer);
      } else {
        answer.set_error(refusal_text(prepared.error()));
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status NodeUnprepareResources(grpc::ServerContext*,
                                      const v1::NodeUnprepareResourcesRequest* request,
                                      v1::NodeUnprepareResourcesResponse* response) override {
    if (request->claims_size() > kMostClaimsOfACall) return too_many();
    const auto deadline = std::chrono::steady_clock::now() + kPrepareTime;
    for (const v1::Claim& claim : request->claims()) {
      v1::NodeUnprepareResourceResponse& answer = (*response->mutable_claims())[claim.uid()];
      const auto done = id_of(claim).and_then(
          [&](const ClaimId& id) { return handler_.unprepare(id, deadline); });
      if (!done) answer.set_error(refusal_text(done.error()));
    }
    return grpc::Status::OK;
  }

 private:
  ClaimHandler& handler_;
};

wire::Health wire_health(Health health) {
  switch (health) {
    case Health::kHealthy:
      return wire::HEALTHY;
    case Health::kUnhealthy:
      return wire::UNHEALTHY;
    case Health::kUnknown:
      break;
  }
  return wire::UNKNOWN;
}

wire::Devices health_message(const PoolHealth& pool, std::chrono::steady_clock::time_point said) {
  wire::Devices message;
  const auto age = std::chrono::steady_clock::now() - said;
  const auto determined = (std::chrono::system_clock::now() - age).time_since_epoch();
  for (const DeviceHealth& health : pool.devices) {
    wire::Device& shown = *message.add_devices();
    shown.mutable_device()->set_pool_name(pool.pool);
    shown.mutable_device()->set_device_name(health.device);
    shown.set_health(wire_health(health.health));
    shown.set_last_updated_time(
        std::chrono::duration_cast<std::chrono::seconds>(determined).count());
    shown.set_health_check_timeout_seconds(kHealthTimeout.count());
    shown.set_message(health.message);
  }
  return message;
}

// `Version`: the service in one of Kubernetes' API versions.
template <class Version>
class HealthService final : public Version::Service {
 public:
  HealthService(const Published<PoolHealth>& health, Streams& streams)
      : health_(health), streams_(streams) {}
  grpc::Status NodeWatchResources(grpc::ServerContext* context, const wire::Watch*,
                                  grpc::ServerWriter<wire::Devices>* writer) override {
    return streams_.tell(health_, *context, *writer, health_message, kHealthAgain)
               ? grpc::Status::OK
               : too_many_streams();
  }

 private:
  const Published<PoolHealth>& health_;
  Streams& streams_;
};

class RegistrationService final : public pluginregistration::Registration::Service {
 public:
  RegistrationService(ClaimHandler& handler, std::string endpoint)
      : handler_(handler), endpoint_(std::move(endpoint)) {}

  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* info) override {
    info->set_type("DRAPlugin");
    info->set_name(std::string(kDriverName));
    info->set_endpoint(endpoint_);
    for (const char* service : {"v1.DRAPlugin", ::v1::DRAResourceHealth::service_full_name(),
                                ::v1beta1::DRAResourceHealth::service_full_name(),
                                ::v1alpha1::DRAResourceHealth::service_full_name()}) {
      info->add_supported_versions(service);
    }
    return grpc::Status::OK;
  }

  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* status,
                                        pluginregistration::RegistrationStatusResponse*) override {
    const std::string why = status->error().empty() ? "no reason" : status->error();
    handler_.on_registration(status->plugin_registered() ? std::string() : why);
    return grpc::Status::OK;
  }

 private:
  ClaimHandler& handler_;
  const std::string endpoint_;
};

class ServedDriver final : public DraServer {
 public:
  ServedDriver(ClaimHandler& handler, const Published<PoolHealth>& health,
               const std::string& socket)
      : dra_(handler),
        health_v1_(health, streams_),
        health_v1beta1_(health, streams_),
        health_v1alpha1_(health, streams_),
        registration_(handler, socket) {}
  ~ServedDriver() override { streams_.end(); }
  // The registration socket comes last: kubelet calls as soon as it finds that one.
  Result<void> listen(const DraServer::Sockets& sockets) {
    GPUROTA_ASSIGN_OR_RETURN(
        UnixServer server, UnixServer::listen(sockets.driver, {&dra_, &health_v1_, &health_v1beta1_,
                                                               &health_v1alpha1_}));
    dra_server_.emplace(std::move(server));
    GPUROTA_ASSIGN_OR_RETURN(UnixServer registry,
                             UnixServer::listen(sockets.registration, {&registration_}));
    registration_server_.emplace(std::move(registry));
    return {};
  }
  bool is_there() const override {
    return dra_server_->is_there() && registration_server_->is_there();
  }

 private:
  Streams streams_;
  DraService dra_;
  HealthService<::v1::DRAResourceHealth> health_v1_;
  HealthService<::v1beta1::DRAResourceHealth> health_v1beta1_;
  HealthService<::v1alpha1::DRAResourceHealth> health_v1alpha1_;
  RegistrationService registration_;
  std::optional<UnixServer> dra_server_, registration_server_;  // destroyed before their services
};

}  // namespace

Result<std::unique_ptr<DraServer>> DraServer::listen(const Sockets& sockets, ClaimHandler& handler,
                                                     const Published<PoolHealth>& health) {
  auto served = std::make_unique<ServedDriver>(handler, health, sockets.driver);
  GPUROTA_TRY(served->listen(sockets));
  return served;
}

}  // namespace gpurota::kube
