#include "kube/device_server.h"

#include "base/log.h"
#include "kube/proto/device_plugin.grpc.pb.h"
#include "kube/streams.h"
#include "kube/unix_server.h"

#include <fmt/format.h>

#include <optional>

#include <grpcpp/grpcpp.h>

namespace gpurota::kube {
namespace {

constexpr const char* kVersion = "v1beta1";

template <class List>
DeviceHandler::Ids ids_of(const List& list) {
  return {list.begin(), list.end()};
}

void fill(v1beta1::DevicePluginOptions& options) {
  options.set_pre_start_required(true);
  options.set_get_preferred_allocation_available(true);
}

v1beta1::ListAndWatchResponse list_of(const Offers& offers,
                                      std::chrono::steady_clock::time_point /*said*/) {
  v1beta1::ListAndWatchResponse list;
  for (const Offered& offered : offers) {
    v1beta1::Device& device = *list.add_devices();
    device.set_id(offered.id);
    device.set_health(offered.healthy ? "Healthy" : "Unhealthy");
    if (offered.numa) device.mutable_topology()->add_nodes()->set_id(*offered.numa);
  }
  return list;
}

void fill(const ContainerAnswer& answer, v1beta1::ContainerAllocateResponse& out) {
  for (const auto& [name, value] : answer.variables) (*out.mutable_envs())[name] = value;
  for (const containers::Mount& mount : answer.mounts) {
    v1beta1::Mount& shown = *out.add_mounts();
    shown.set_container_path(mount.to);
    shown.set_host_path(mount.from);
    shown.set_read_only(true);
  }
  for (const std::string& file : answer.device_files) {
    v1beta1::DeviceSpec& shown = *out.add_devices();
    shown.set_container_path(file);
    shown.set_host_path(file);
    shown.set_permissions("rw");
  }
  for (const std::string& name : answer.cdi_devices) out.add_cdi_devices()->set_name(name);
}

class Service final : public v1beta1::DevicePlugin::Service {
 public:
  Service(DeviceHandler& handler, const Published<Offers>& offers)
      : handler_(handler), offers_(offers) {}
  int streams() const { return streams_.open(); }
  void end() { streams_.end(); }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override {
    fill(*options);
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    return streams_.tell(offers_, *context, *writer, list_of) ? grpc::Status::OK
                                                              : too_many_streams();
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override {
    for (const auto& asked : request->container_requests()) {
      const auto size = static_cast<std::size_t>(std::max(asked.allocation_size(), 0));
      const auto ids = handler_.prefer(ids_of(asked.available_deviceids()),
                                       ids_of(asked.must_include_deviceids()), size);
      auto& answer = *response->add_container_responses();
      for (const std::string& id : ids) answer.add_deviceids(id);
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const auto& asked : request->container_requests()) {
      const auto answer = handler_.allocate(ids_of(asked.devices_ids()));
      if (!answer) return status_of(answer.error());
      fill(*answer, *response->add_container_responses());
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext*,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse*) override {
    const auto done = handler_.pre_start(ids_of(request->devices_ids()));
    return done ? grpc::Status::OK : status_of(done.error());
  }

 private:
  DeviceHandler& handler_;
  const Published<Offers>& offers_;
  Streams streams_;
};

class Served final : public DeviceServer {
 public:
  Served(DeviceHandler& handler, const Published<Offers>& offers) : service_(handler, offers) {}
  ~Served() override { service_.end(); }
  Result<void> listen(const std::string& socket) {
    GPUROTA_ASSIGN_OR_RETURN(UnixServer server, UnixServer::listen(socket, {&service_}));
    server_.emplace(std::move(server));
    return {};
  }
  int streams() const override { return service_.streams(); }
  bool is_there() const override { return server_->is_there(); }

 private:
  Service service_;
  std::optional<UnixServer> server_;  // destroyed before its service
};

}  // namespace

Result<std::unique_ptr<DeviceServer>> DeviceServer::listen(const std::string& socket,
                                                           DeviceHandler& handler,
                                                           const Published<Offers>& offers) {
  auto served = std::make_unique<Served>(handler, offers);
  GPUROTA_TRY(served->listen(socket));
  return served;
}

Result<void> register_device(const std::string& kubelet_socket, const std::string& endpoint,
                             const std::string& resource, std::chrono::milliseconds patience) {
  const auto kubelet = v1beta1::Registration::NewStub(connect_to(kubelet_socket));
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(endpoint);
  request.set_resource_name(resource);
  fill(*request.mutable_options());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  v1beta1::Empty nothing;
  const grpc::Status status = kubelet->Register(&context, request, &nothing);
  if (status.ok()) return {};
  return fail(Code::kUnavailable, fmt::format("kubelet at {} does not register {}: {}",
                                              kubelet_socket, resource, status.error_message()));
}

}  // namespace gpurota::kube
