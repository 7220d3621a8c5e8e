#include "kube/dra/dra_server.h"

#include "base/text.h"
#include "kube/proto/dra.grpc.pb.h"
#include "kube/proto/plugin_registration.grpc.pb.h"
#include "kube/unix_server.h"

#include <fmt/format.h>

#include <optional>

#include <grpcpp/grpcpp.h>

namespace gpurota::kube {
namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;

// Kubelet gives a call 45 s.
constexpr std::chrono::seconds kPrepareTime(30);
constexpr int kMostClaimsOfACall = 256;

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
  for (const ClaimDevice& device : prepared.devices) {
    v1::Device& shown = *out.add_devices();
    shown.add_request_names(device.request);
    shown.set_pool_name(device.pool);
    shown.set_device_name(device.device);
    for (const std::string& name : prepared.cdi_devices) shown.add_cdi_device_ids(name);
    if (!device.share_id.empty()) shown.set_share_id(device.share_id);
  }
}

class DraService final : public v1::DRAPlugin::Service {
 public:
  explicit DraService(ClaimDesk& desk) : desk_(desk) {}

  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const v1::NodePrepareResourcesRequest* request,
                                    v1::NodePrepareResourcesResponse* response) override {
    if (request->claims_size() > kMostClaimsOfACall) return too_many();
    const auto deadline = std::chrono::steady_clock::now() + kPrepareTime;
    for (const v1::Claim& claim : request->claims()) {
      v1::NodePrepareResourceResponse& answer = (*response->mutable_claims())[claim.uid()];
      const auto prepared =
          id_of(claim).and_then([&](const ClaimId& id) { return desk_.prepare(id, deadline); });
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
      const auto done =
          id_of(claim).and_then([&](const ClaimId& id) { return desk_.unprepare(id, deadline); });
      if (!done) answer.set_error(refusal_text(done.error()));
    }
    return grpc::Status::OK;
  }

 private:
  ClaimDesk& desk_;
};

class RegistrationService final : public pluginregistration::Registration::Service {
 public:
  RegistrationService(ClaimDesk& desk, std::string endpoint)
      : desk_(desk), endpoint_(std::move(endpoint)) {}

  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* info) override {
    info->set_type("DRAPlugin");
    info->set_name(std::string(kDriverName));
    info->set_endpoint(endpoint_);
    info->add_supported_versions("v1.DRAPlugin");
    return grpc::Status::OK;
  }

  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* status,
                                        pluginregistration::RegistrationStatusResponse*) override {
    const std::string why = status->error().empty() ? "no reason" : status->error();
    desk_.on_registration(status->plugin_registered() ? std::string() : why);
    return grpc::Status::OK;
  }

 private:
  ClaimDesk& desk_;
  const std::string endpoint_;
};

class ServedDriver final : public DraServer {
 public:
  ServedDriver(ClaimDesk& desk, const std::string& socket)
      : dra_(desk), registration_(desk, socket) {}
  // Kubelet asks as soon as it finds the first: so that comes last.
  Result<void> listen(const std::string& registration_socket, const std::string& socket) {
    GPUROTA_ASSIGN_OR_RETURN(UnixServer server, UnixServer::listen(socket, {&dra_}));
    dra_server_.emplace(std::move(server));
    GPUROTA_ASSIGN_OR_RETURN(UnixServer registry,
                             UnixServer::listen(registration_socket, {&registration_}));
    registration_server_.emplace(std::move(registry));
    return {};
  }
  bool is_there() const override {
    return dra_server_->is_there() && registration_server_->is_there();
  }

 private:
  DraService dra_;
  RegistrationService registration_;
  std::optional<UnixServer> dra_server_, registration_server_;  // end before their services
};

}  // namespace

Result<std::unique_ptr<DraServer>> DraServer::listen(const std::string& registration_socket,
                                                     const std::string& socket, ClaimDesk& desk) {
  auto served = std::make_unique<ServedDriver>(desk, socket);
  GPUROTA_TRY(served->listen(registration_socket, socket));
  return served;
}

}  // namespace gpurota::kube
