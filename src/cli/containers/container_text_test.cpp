#include "cli/containers/container_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using ::testing::HasSubstr;

ContainerParts make_parts() {
  ContainerParts parts;
  parts.variables = {{"GPUROTA_LEASE", "L7"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  parts.token = "secret";
  parts.mounts = {{"/run/gpurota/container", "/run/gpurota/container"},
                  {"/usr/lib/libgpurota.so", "/usr/lib/libgpurota.so"}};
  parts.devices = {"/dev/nvidia0"};
  return parts;
}

TEST(ContainerText, TheTokenIsInTheFileOfVariablesAndNowhereElse) {
  const ContainerParts parts = make_parts();
  EXPECT_EQ(env_file_text(parts),
            "GPUROTA_LEASE=L7\nCUDA_VISIBLE_DEVICES=0\nGPUROTA_TOKEN=secret\n");
  EXPECT_EQ(options_text(Engine::kDocker, parts, "/home/a/web.env"),
            "--env-file /home/a/web.env --volume /run/gpurota/container:/run/gpurota/container:ro "
            "--volume /usr/lib/libgpurota.so:/usr/lib/libgpurota.so:ro --device /dev/nvidia0\n");
  EXPECT_EQ(compose_text(parts, "/home/a/web.env", "api"),
            "services:\n"
            "  'api':\n"
            "    env_file:\n"
            "      - '/home/a/web.env'\n"
            "    volumes:\n"
            "      - '/run/gpurota/container:/run/gpurota/container:ro'\n"
            "      - '/usr/lib/libgpurota.so:/usr/lib/libgpurota.so:ro'\n"
            "    devices:\n"
            "      - '/dev/nvidia0'\n");
}

TEST(ContainerText, ToolkitGpusAreNamedForDockerAndCompose) {
  ContainerParts parts;
  parts.gpu_ids = {"GPU-a", "GPU-b"};
  EXPECT_EQ(options_text(Engine::kDocker, parts, "/e"),
            "--env-file /e --gpus \"device=GPU-a,GPU-b\"\n");
  const auto compose = compose_text(parts, "/e", "app");
  ASSERT_TRUE(compose);
  EXPECT_THAT(*compose,
              HasSubstr("device_ids:\n                - 'GPU-a'\n                - 'GPU-b'\n"));
}

TEST(ContainerText, CtrMountsHaveTheirOwnSyntax) {
  EXPECT_EQ(
      options_text(Engine::kCtr, make_parts(), "/e"),
      "--env-file /e --mount "
      "type=bind,src=/run/gpurota/container,dst=/run/gpurota/container,options=rbind:ro "
      "--mount type=bind,src=/usr/lib/libgpurota.so,dst=/usr/lib/libgpurota.so,options=rbind:ro "
      "--device /dev/nvidia0\n");
}

TEST(ContainerText, ComposeDisablesTheSelinuxLabel) {
  ContainerParts parts = make_parts();
  parts.unlabelled = true;
  const auto compose = compose_text(parts, "/e", "app");
  ASSERT_TRUE(compose);
  EXPECT_THAT(*compose, HasSubstr("    security_opt:\n      - 'label=disable'\n"));
}

TEST(ContainerText, TextThatAShellWouldSplitOrExpandIsRefused) {
  ContainerParts parts = make_parts();
  EXPECT_EQ(options_text(Engine::kDocker, parts, "/home/a b/e").error().code, Code::kInvalid);
  EXPECT_EQ(compose_text(parts, "/e", "it's").error().code, Code::kInvalid);
  parts.mounts.front().from = "/opt/$HOME";
  EXPECT_THAT(options_text(Engine::kDocker, parts, "/e").error().message, HasSubstr("/opt/$HOME"));
  parts.variables.front().value = "two\nlines";
  EXPECT_FALSE(env_file_text(parts));
}

}  // namespace
}  // namespace gpurota::cli
