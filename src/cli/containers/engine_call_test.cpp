#include "cli/containers/engine_call.h"

#include "cli/containers/contain.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

EngineCall call_of(const Words& command) {
  const auto call = engine_call(command);
  EXPECT_TRUE(call) << command.front();
  return call.value_or(EngineCall{});
}

TEST(EngineCall, OptionsBeginAfterTheRunSubcommand) {
  EXPECT_EQ(call_of({"docker", "run", "image"}).options_at, 2u);
  EXPECT_EQ(call_of({"/usr/bin/podman", "container", "run", "image"}).options_at, 3u);
  EXPECT_EQ(call_of({"podman", "--root", "run", "--runtime=crun", "run", "image"}).options_at, 5u);
  EXPECT_EQ(call_of({"nerdctl", "-n", "k8s.io", "run", "image"}).engine, Engine::kNerdctl);
  EXPECT_EQ(call_of({"singularity", "exec", "a.sif", "python"}).engine, Engine::kApptainer);
}

TEST(EngineCall, CommandThatCreatesNoContainerIsIgnored) {
  EXPECT_FALSE(engine_call({"podman", "ps"}));
  EXPECT_FALSE(engine_call({"docker"}));
  EXPECT_FALSE(engine_call({"docker", "--log-level", "run"}));
  EXPECT_FALSE(engine_call({"docker", "compose", "run", "web"}));
  EXPECT_FALSE(engine_call({"mydocker", "run", "image"}));
}

TEST(EngineCall, ADetachedContainerOutlivesItsCommand) {
  EXPECT_TRUE(call_of({"docker", "run", "-d", "image"}).outlives);
  EXPECT_TRUE(call_of({"docker", "run", "-itd", "image"}).outlives);
  EXPECT_TRUE(call_of({"docker", "run", "--name", "x", "--detach", "image"}).outlives);
  EXPECT_TRUE(call_of({"docker", "create", "image"}).outlives);
  EXPECT_TRUE(call_of({"apptainer", "-q", "instance", "start", "a.sif", "one"}).outlives);
  EXPECT_FALSE(call_of({"docker", "run", "--detach=false", "image"}).outlives);
  EXPECT_FALSE(call_of({"docker", "run", "-d=false", "image"}).outlives);
  EXPECT_FALSE(call_of({"docker", "run", "-itd=0", "image"}).outlives);
  EXPECT_TRUE(call_of({"docker", "run", "-d=true", "image"}).outlives);
  EXPECT_TRUE(call_of({"docker", "run", "-dt=false", "image"}).outlives);
}

TEST(EngineCall, ArgumentsAfterTheImageBelongToTheProgram) {
  EXPECT_FALSE(call_of({"docker", "run", "--rm", "-e", "A=1", "-it", "image", "-d"}).outlives);
  EXPECT_FALSE(call_of({"podman", "run", "--", "image", "-d"}).outlives);
  EXPECT_FALSE(call_of({"podman", "run", "-v/a:/d", "image", "--detach"}).outlives);
  EXPECT_FALSE(call_of({"podman", "run", "--name", "-d", "image"}).outlives) << "a value";
  EXPECT_TRUE(call_of({"podman", "run", "image", "--gpus", "all"}).gpus.empty());
}

TEST(EngineCall, GpusOfTheUserAreDetected) {
  EXPECT_EQ(call_of({"docker", "run", "--gpus", "all", "image"}).gpus, Words{"all"});
  EXPECT_EQ(call_of({"podman", "run", "--device=nvidia.com/gpu=0", "image"}).gpus,
            Words{"nvidia.com/gpu=0"});
  EXPECT_TRUE(call_of({"podman", "run", "--device", "/dev/fuse", "image"}).gpus.empty());
  EXPECT_EQ(call_of({"docker", "create", "--gpus", "all", "image"}).gpus, Words{"all"});
}

TEST(EngineCall, PrivilegedOrMountedDevMeansAllDevices) {
  EXPECT_TRUE(call_of({"docker", "run", "--privileged", "image"}).all_devices);
  EXPECT_TRUE(call_of({"docker", "run", "-v", "/dev:/dev", "image"}).all_devices);
  EXPECT_FALSE(
      call_of({"docker", "run", "--privileged=false", "-v", "/data:/dev", "x"}).all_devices);
}

TEST(EngineCall, TheEnginesOwnOptionsStandBeforeItsSubcommand) {
  EXPECT_EQ(call_of({"podman", "--root", "/r", "--log-level=debug", "container", "run", "x"})
                .subcommand_at,
            4u);
  EXPECT_EQ(call_of({"podman", "run", "--cidfile=/f", "x"}).id_file, "/f");
  EXPECT_EQ(call_of({"podman", "run", "x", "--cidfile=/f"}).id_file, "");
}

TEST(EngineCall, SelinuxLabelOfTheCommandIsDetected) {
  EXPECT_TRUE(call_of({"podman", "run", "--security-opt", "label=type:own_t", "x"}).own_label);
  EXPECT_TRUE(call_of({"docker", "run", "--security-opt=label:disable", "x"}).own_label);
  EXPECT_FALSE(call_of({"podman", "run", "--security-opt", "seccomp=unconfined", "x"}).own_label);
  EXPECT_FALSE(call_of({"podman", "run", "x", "--security-opt", "label=disable"}).own_label);
}

TEST(EngineCall, RemoteEngineIsDetected) {
  EXPECT_TRUE(call_of({"docker", "-H", "ssh://host", "run", "image"}).elsewhere);
  EXPECT_TRUE(call_of({"podman-remote", "run", "image"}).elsewhere);
  EXPECT_TRUE(call_of({"podman", "--url=tcp://host:1", "run", "image"}).elsewhere);
  EXPECT_TRUE(call_of({"docker", "-Hhost:2375", "run", "image"}).elsewhere);
  EXPECT_TRUE(call_of({"docker", "--context", "far", "run", "image"}).elsewhere);
  EXPECT_TRUE(call_of({"podman", "--remote", "run", "image"}).elsewhere);
  EXPECT_TRUE(call_of({"podman", "-c", "far", "run", "image"}).elsewhere);
  EXPECT_FALSE(call_of({"docker", "--host", "unix:///run/docker.sock", "run", "image"}).elsewhere);
  EXPECT_FALSE(call_of({"docker", "--context=default", "run", "image"}).elsewhere);
}

TEST(EngineHint, HintAppearsForOtherContainerTools) {
  EXPECT_NE(engine_hint({"docker", "compose", "up"}), "");
  EXPECT_NE(engine_hint({"podman", "--log-level", "debug", "kube", "play", "a.yaml"}), "");
  EXPECT_NE(engine_hint({"/usr/bin/enroot", "start"}), "");
  EXPECT_NE(engine_hint({"sudo", "docker", "run", "x"}).find("sudo gpurota run"),
            std::string::npos);
  EXPECT_EQ(engine_hint({"docker", "run", "x"}), "");
  EXPECT_EQ(engine_hint({"sudo", "ls"}), "");
}

TEST(CheckEngineCall, SaysWhatToWriteInstead) {
  const auto says = [](const Words& command, bool reserved, const char* text) {
    const auto checked = check_engine_call(command, reserved);
    return !checked && checked.error().message.find(text) != std::string::npos;
  };
  EXPECT_TRUE(says({"podman", "run", "-d", "x"}, false, "leave out --detach"));
  EXPECT_TRUE(check_engine_call({"podman", "run", "-d", "x"}, true));
  EXPECT_TRUE(says({"podman", "exec", "c", "python"}, true, "podman run"));
  EXPECT_TRUE(says({"docker", "-H", "tcp://a:1", "run", "x"}, false, "another machine"));
  EXPECT_TRUE(check_engine_call({"python", "-d"}, false));
  ASSERT_EQ(::setenv("DOCKER_HOST", "ssh://far", 1), 0);
  EXPECT_TRUE(says({"docker", "run", "x"}, false, "another machine"));
  EXPECT_TRUE(check_engine_call({"podman", "run", "x"}, false));
  ::unsetenv("DOCKER_HOST");
}

}  // namespace
}  // namespace gpurota::cli
