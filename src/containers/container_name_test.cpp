#include "containers/container_name.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

namespace gpurota::containers {
namespace {

namespace fs = std::filesystem;

const std::string kId(64, 'a');

class ContainerNameTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const fs::path file = root() / path;
    fs::create_directories(file.parent_path());
    testing::write_file(file.string(), text);
  }
  fs::path root() const { return dir_.path(); }
  ContainerName read(const std::string& id = kId) const { return read_container_name(root(), id); }

 private:
  testing::TempDir dir_;
};

constexpr const char* kDocker = R"({"ID":"x","Name":"/web","Config":{"Image":"alpine:3"}})";

TEST_F(ContainerNameTest, UnknownContainerHasNoName) {
  EXPECT_EQ(read(), ContainerName());
  write("var/lib/docker/containers/" + std::string(64, 'b') + "/config.v2.json", kDocker);
  EXPECT_EQ(read(), ContainerName()) << "another container";
}

TEST_F(ContainerNameTest, IsReadFromDocker) {
  write("var/lib/docker/containers/" + kId + "/config.v2.json", kDocker);
  EXPECT_EQ(read(), (ContainerName{"web", "alpine:3"}));
}

TEST_F(ContainerNameTest, IsReadFromAMovedDockerFolder) {
  write("etc/docker/daemon.json", R"({"data-root": "/big/docker"})");
  write("big/docker/containers/" + kId + "/config.v2.json", kDocker);
  EXPECT_EQ(read().name, "web");
}

TEST_F(ContainerNameTest, IsReadFromDockerWithRemappedUsers) {
  write("var/lib/docker/100000.100000/containers/" + kId + "/config.v2.json", kDocker);
  EXPECT_EQ(read().name, "web");
}

std::string listed(const std::string& id) {
  return R"([{"id":"other"},{"id":")" + id +
         R"(","names":["web"],"metadata":)"
         R"("{\"image-name\":\"docker.io/library/alpine:3\",\"name\":\"web\"}"}])";
}

TEST_F(ContainerNameTest, IsReadFromPodman) {
  write("var/lib/containers/storage/overlay-containers/containers.json", listed(kId));
  EXPECT_EQ(read(), (ContainerName{"web", "docker.io/library/alpine:3"}));
}

TEST_F(ContainerNameTest, IsReadFromPodmanForATemporaryContainer) {
  write("run/containers/storage/vfs-containers/volatile-containers.json", listed(kId));
  EXPECT_EQ(read().name, "web");
}

TEST_F(ContainerNameTest, IsReadFromContainerdForAPod) {
  write("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json",
        R"({"annotations":{"io.kubernetes.cri.container-name":"main",
            "io.kubernetes.cri.sandbox-name":"train-0","io.kubernetes.cri.sandbox-namespace":"lab",
            "io.kubernetes.cri.image-name":"registry/torch:2"}})");
  EXPECT_EQ(read(), (ContainerName{"lab/train-0/main", "registry/torch:2"}));
}

TEST_F(ContainerNameTest, IsReadFromCrioForAPod) {
  write("run/containers/storage/overlay-containers/" + kId + "/userdata/config.json",
        R"({"annotations":{"io.kubernetes.container.name":"main","io.kubernetes.pod.name":"train-0",
            "io.kubernetes.pod.namespace":"lab","io.kubernetes.cri-o.ImageName":"torch:2"}})");
  EXPECT_EQ(read(), (ContainerName{"lab/train-0/main", "torch:2"}));
}

TEST_F(ContainerNameTest, AnnotationsDoNotMakeADockerContainerAPod) {
  const std::string pod = R"({"annotations":{"io.kubernetes.cri.container-name":"etcd",
      "io.kubernetes.cri.sandbox-name":"etcd","io.kubernetes.cri.sandbox-namespace":"kube-system",
      "nerdctl/name":"kube-system/etcd/etcd"}})";
  write("run/containerd/io.containerd.runtime.v2.task/moby/" + kId + "/config.json", pod);
  EXPECT_EQ(read(), ContainerName());
  write("var/lib/docker/containers/" + kId + "/config.v2.json", kDocker);
  EXPECT_EQ(read().name, "web");
}

TEST_F(ContainerNameTest, IncompletePodNameIsIgnored) {
  write("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json",
        R"({"annotations":{"io.kubernetes.cri.container-name":"main"}})");
  EXPECT_EQ(read(), ContainerName());
}

TEST_F(ContainerNameTest, LinksAreResolvedBelowTheRoot) {
  write("data/docker/containers/" + kId + "/config.v2.json", kDocker);
  fs::create_directories(root() / "var/lib");
  fs::create_symlink("/data/docker", root() / "var/lib/docker");
  EXPECT_EQ(read().name, "web");
}

TEST_F(ContainerNameTest, MalformedFileGivesNoName) {
  const std::string file = "var/lib/docker/containers/" + kId + "/config.v2.json";
  for (const char* const text : {"", "{", "[]", "{}", R"({"Name":7,"Config":[]})",
                                 R"({"Name":"/x\u001b[31m","Config":{"Image":"a b"}})"}) {
    write(file, text);
    EXPECT_EQ(read(), ContainerName()) << text;
  }
  write(file, R"({"Name":"/)" + std::string(kLongestName + 1, 'x') + R"("})");
  EXPECT_EQ(read(), ContainerName());
}

TEST_F(ContainerNameTest, MalformedListGivesNoName) {
  const std::string file = "var/lib/containers/storage/overlay-containers/containers.json";
  for (const std::string& text :
       {std::string("{}"), std::string("[7, []]"), R"([{"id":")" + kId + R"("}])",
        R"([{"id":")" + kId + R"(","metadata":"{"}])"}) {
    write(file, text);
    EXPECT_EQ(read(), ContainerName()) << text;
  }
}

TEST(ContainerNameByMonitor, IsReadOnlyForTheMonitorsOwnContainer) {
  const std::vector<std::string> command{"conmon", "-c", kId, "-u", kId, "-n", "web", "--full"};
  EXPECT_EQ(name_by_monitor(command, kId), "web");
  EXPECT_EQ(name_by_monitor(command, std::string(64, 'b')), "");
  EXPECT_EQ(name_by_monitor({"conmon", "-c", kId}, kId), "");
  EXPECT_EQ(name_by_monitor({"conmon", "-c", kId, "-n"}, kId), "");
  EXPECT_EQ(name_by_monitor({"conmon", "-c", kId, "-n", "a\nb"}, kId), "");
  EXPECT_EQ(name_by_monitor({"conmon", "-c", kId, "-n", "kube-system/etcd/etcd"}, kId), "")
      << "podman has no such names";
}

}  // namespace
}  // namespace gpurota::containers
