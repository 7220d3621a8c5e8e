#include "containers/kubernetes_node.h"

#include "base/fd.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpurota::containers {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  testing::write_file(path.string(), text);
}

Fd bound_socket(const fs::path& path) {
  fs::create_directories(path.parent_path());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

Fd listener_at(const fs::path& path) {
  Fd socket = bound_socket(path);
  EXPECT_EQ(::listen(socket.get(), 4), 0);
  return socket;
}

TEST(KubernetesNode, WithoutKubeletThereIsNothing) {
  const testing::TempDir dir;
  const KubernetesNode node = read_kubernetes_node(fs::path(dir.path()) / "kubelet", dir.path());
  EXPECT_FALSE(node.has_kubelet);
  EXPECT_THAT(node.plugins, IsEmpty());
}

TEST(KubernetesNode, SocketWithoutAListenerIsNotAPlugin) {
  const testing::TempDir dir;
  const fs::path kubelet = fs::path(dir.path()) / "kubelet", plugins = kubelet / "device-plugins";
  const Fd of_kubelet = listener_at(plugins / "kubelet.sock");
  const Fd alive = listener_at(plugins / "gpurota-memory.sock");
  const Fd driver = listener_at(kubelet / "plugins_registry" / "gpurota.dev-reg.sock");
  const Fd dead = bound_socket(plugins / "gpurota-gpu.sock");
  write(plugins / "gpurota-turn.sock", "a file");
  const KubernetesNode node = read_kubernetes_node(kubelet, dir.path());
  EXPECT_TRUE(node.has_kubelet);
  EXPECT_FALSE(node.is_closed);
  EXPECT_TRUE(node.kubelet_listens);
  EXPECT_THAT(node.plugins, ElementsAre("gpurota-memory.sock"));
  EXPECT_THAT(node.drivers, ElementsAre("gpurota.dev-reg.sock"));
}

TEST(KubernetesNode, CountsWhatKubeletWasOffered) {
  EXPECT_THAT(*parse_checkpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":
                {"gpurota.dev/memory":["a","b"],"x/y":null}},"Checksum":1})"),
              ElementsAre(Pair("gpurota.dev/memory", 2U), Pair("x/y", 0U)));
  EXPECT_THAT(*parse_checkpoint(R"({"Data":{"RegisteredDevices":null},"Checksum":1})"), IsEmpty());
  for (const char* const wrong :
       {"", "{", "[]", "{}", R"({"Data":3})", R"({"Data":{"RegisteredDevices":[1]}})"}) {
    EXPECT_FALSE(parse_checkpoint(wrong)) << wrong;
  }
}

TEST(KubernetesNode, ContainerdBefore2HasCdiOnlyWhereItSaysSo) {
  EXPECT_TRUE(allows_cdi("version = 3\n"));
  EXPECT_FALSE(allows_cdi("version = 3\n[plugins.x]\n  enable_cdi = false # why\n"));
  EXPECT_FALSE(allows_cdi("version = 2\n"));
  EXPECT_FALSE(allows_cdi("version = 2\n# enable_cdi = true\n"));
  EXPECT_TRUE(allows_cdi("version = 2\n  enable_cdi=true"));
  EXPECT_FALSE(allows_cdi(""));
}

TEST(KubernetesNode, NamesTheConfigurationThatForbidsCdi) {
  const testing::TempDir dir;
  const fs::path kubelet = fs::path(dir.path()) / "kubelet";
  fs::create_directories(kubelet / "device-plugins");
  EXPECT_EQ(read_kubernetes_node(kubelet, dir.path()).without_cdi, "") << "another runtime";
  write(fs::path(dir.path()) / "etc/containerd/config.toml", "version = 2\n");
  EXPECT_EQ(read_kubernetes_node(kubelet, dir.path()).without_cdi, "/etc/containerd/config.toml");
  write(fs::path(dir.path()) / "etc/containerd/config.toml", "disabled_plugins = [\"cri\"]\n");
  EXPECT_EQ(read_kubernetes_node(kubelet, dir.path()).without_cdi, "") << "that of Docker alone";
  write(fs::path(dir.path()) / "etc/containerd/config.toml", "version = 2\n");
  write(fs::path(dir.path()) / "var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        "version = 3\n");
  EXPECT_EQ(read_kubernetes_node(kubelet, dir.path()).without_cdi, "") << "k3s has its own";
}

TEST(KubernetesNode, SeesWhetherThePluginHasGivenDevicesSinceKubeletStarted) {
  const testing::TempDir dir;
  const fs::path kubelet = fs::path(dir.path()) / "kubelet";
  const fs::path state = fs::path(dir.path()) / "var/lib/gpurota-kubernetes/allocations.textproto";
  const Fd of_kubelet = listener_at(kubelet / "device-plugins" / "kubelet.sock");
  const auto sees = [&] { return read_kubernetes_node(kubelet, dir.path()).plugin_has_given; };
  EXPECT_FALSE(sees());
  write(state, "");
  const auto started = fs::last_write_time(kubelet / "device-plugins" / "kubelet.sock");
  fs::last_write_time(state, started + std::chrono::seconds(1));
  EXPECT_TRUE(sees());
  fs::last_write_time(state, started - std::chrono::seconds(1));
  EXPECT_FALSE(sees());
}

TEST(KubernetesNode, ReadsKubeletsFileOfClaims) {
  const testing::TempDir dir;
  const fs::path kubelet = fs::path(dir.path()) / "kubelet";
  write(kubelet / "device-plugins" / "x", "");
  EXPECT_FALSE(read_kubernetes_node(kubelet, dir.path()).claims);
  write(kubelet / "dra_manager_state", "uid-1");
  EXPECT_EQ(read_kubernetes_node(kubelet, dir.path()).claims, "uid-1");
}

}  // namespace
}  // namespace gpurota::containers
