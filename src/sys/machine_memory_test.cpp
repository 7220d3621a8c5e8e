#include "sys/machine_memory.h"

#include <gtest/gtest.h>

namespace gpurota::sys {
namespace {

TEST(MachineMemory, IsReadFromMeminfo) {
  EXPECT_EQ(parse_meminfo("MemTotal:       125829120 kB\nMemFree:         1 kB\n"
                          "MemAvailable:   62914560 kB\n"),
            (MachineMemory{gib(120), gib(60)}));
}

TEST(MachineMemory, IsUnknownWithoutBothFigures) {
  EXPECT_FALSE(parse_meminfo("MemTotal:       125829120 kB\nMemFree:         1 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal:  many kB\nMemAvailable: 1 kB\n"));
  EXPECT_FALSE(parse_meminfo(""));
}

TEST(MachineMemory, CanBeReadOnThisMachine) {
  const auto memory = read_machine_memory();
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->available, Bytes());
  EXPECT_GT(memory->total, memory->available);
}

}  // namespace
}  // namespace gpurota::sys
