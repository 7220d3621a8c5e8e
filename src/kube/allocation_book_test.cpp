#include "kube/allocation_book.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace gpurota::kube {
namespace {

class Book : public ::testing::Test {
 protected:
  AllocationBook open() {
    auto book = AllocationBook::open(file_, TimePoint());
    EXPECT_TRUE(book) << book.error().message;
    return std::move(book).value();
  }
  static Allocation allocation_of(const std::string& id, const std::vector<std::string>& devices) {
    Allocation allocation;
    allocation.id = id;
    allocation.token = "token of " + id;
    allocation.resource = Resource::kMemory;
    allocation.devices = parse_device_ids(Resource::kMemory, devices).value();
    return allocation;
  }

  testing::TempDir dir_;
  const std::string file_ = dir_.file("allocations.textproto");
};

TEST_F(Book, EntriesSurviveARestart) {
  {
    AllocationBook book = open();
    ASSERT_TRUE(book.add(allocation_of("kube-1", {"a::0", "a::1"})));
    ASSERT_TRUE(book.name(*book.find("kube-1"), {"default", "train", "main"}));
  }
  AllocationBook book = open();
  const Allocation* const found =
      book.find(Resource::kMemory, parse_device_ids(Resource::kMemory, {"a::1", "a::0"}).value());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->token, "token of kube-1");
  ASSERT_TRUE(found->pod);
  EXPECT_EQ(found->pod->name, "train");
}

TEST_F(Book, ReallocatedDevicesAreRemovedFromTheirFormerContainer) {
  AllocationBook book = open();
  ASSERT_TRUE(book.add(allocation_of("kube-1", {"a::0", "a::1"})));
  ASSERT_TRUE(book.add(allocation_of("kube-2", {"a::2"})));
  const auto made = book.add(allocation_of("kube-3", {"a::1", "a::2"}));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->over.size(), 2u);
  EXPECT_EQ(open().all().size(), 1u);
}

TEST_F(Book, TheSameNumberOfAnotherResourceIsAnotherDevice) {
  AllocationBook book = open();
  ASSERT_TRUE(book.add(allocation_of("kube-1", {"a::0"})));
  Allocation turn = allocation_of("kube-2", {"a::0"});
  turn.resource = Resource::kTurn;
  const auto made = book.add(std::move(turn));
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->over.empty());
}

TEST_F(Book, TheBooksFileIsForItsOwnerOnly) {
  AllocationBook book = open();
  ASSERT_TRUE(book.add(allocation_of("kube-1", {"a::0"})));
  struct stat info;
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Book, BookingThatCannotBeStoredIsNotConfirmed) {
  AllocationBook book = open();
  ASSERT_TRUE(book.add(allocation_of("kube-1", {"a::0"})));
  ASSERT_EQ(::mkdir((file_ + ".new").c_str(), 0700), 0);
  EXPECT_FALSE(book.add(allocation_of("kube-2", {"a::0"})));
  EXPECT_TRUE(book.find("kube-1")) << "as it was before";
  EXPECT_FALSE(book.find("kube-2"));
}

TEST_F(Book, ADamagedFileIsAnErrorThatSaysWhatToDo) {
  for (const char* text : {"nonsense", "allocations { allocation: \"kube-1\" resource: \"tpu\" }",
                           "allocations { allocation: \"kube-1\" resource: \"memory\" }"}) {
    testing::write_file(file_, text);
    const auto book = AllocationBook::open(file_, TimePoint());
    ASSERT_FALSE(book) << text;
    EXPECT_NE(book.error().message.find("put back a copy"), std::string::npos);
  }
}

}  // namespace
}  // namespace gpurota::kube
