#include "proto/looks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpurota::proto {
namespace {

template <class... Methods>
std::vector<std::string> changing(const std::variant<Methods...>*) {
  std::vector<std::string> names;
  for (const std::string_view method : {Methods::kMethod...}) {
    if (!only_looks(method)) names.emplace_back(method.substr(method.rfind('.') + 1));
  }
  return names;
}

// A new method comes up here: whether it only looks is to be decided.
TEST(Looks, EveryOtherMethodChangesSomething) {
  EXPECT_EQ(
      changing(static_cast<const Params*>(nullptr)),
      (std::vector<std::string>{"Acquire", "Start", "Release", "Update", "Reload", "Enqueue",
                                "Cancel", "Drain", "Undrain", "AddFiller", "ControlFiller",
                                "SetGpus", "AddJob", "ControlJob", "UpdateJob", "ApplyJobs"}));
}

TEST(Looks, ByTheWholeName) {
  EXPECT_TRUE(only_looks("dev.gpurota.Status"));
  EXPECT_TRUE(only_looks("org.varlink.service.GetInfo"));
  EXPECT_FALSE(only_looks("Status"));
  EXPECT_FALSE(only_looks("dev.gpurota.Nonsense"));
}

TEST(Looks, WhatTellsSecretsOnlyLooks) {
  for (const char* method : {"dev.gpurota.GetEnvironment", "dev.gpurota.ExportJobs"}) {
    EXPECT_TRUE(tells_secrets(method) && only_looks(method)) << method;
  }
  EXPECT_FALSE(tells_secrets("dev.gpurota.Status"));
}

}  // namespace
}  // namespace gpurota::proto
