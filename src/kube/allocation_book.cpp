#include "kube/allocation_book.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "kube/proto/allocations.pb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

namespace gpurota::kube {
namespace {

constexpr mode_t kOwnFile = 0600;  // tokens are in it
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// Kept instead of printed.
struct FirstError final : google::protobuf::io::ErrorCollector {
  void AddError(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    if (text.empty()) text = fmt::format("line {}: {}", line + 1, display_text(message));
  }
  std::string text;
};

stored::Allocation row_of(const Allocation& allocation) {
  stored::Allocation row;
  row.set_allocation(allocation.id);
  row.set_token(allocation.token);
  row.set_resource(to_string(allocation.resource));
  for (const Device& device : allocation.devices) {
    row.add_devices(device_id(allocation.resource, device));
  }
  if (allocation.pod) {
    row.set_namespace_(allocation.pod->namespace_);
    row.set_pod(allocation.pod->name);
    row.set_container(allocation.pod->container);
  }
  return row;
}

Result<Allocation> allocation_of(const stored::Allocation& row, TimePoint now) {
  Allocation allocation;
  allocation.id = row.allocation();
  allocation.token = row.token();
  GPUROTA_ASSIGN_OR_RETURN(allocation.resource, parse_resource(row.resource()));
  GPUROTA_ASSIGN_OR_RETURN(
      allocation.devices,
      parse_device_ids(allocation.resource, {row.devices().begin(), row.devices().end()}));
  if (!row.pod().empty()) {
    allocation.pod = proto::Pod{row.namespace_(), row.pod(), row.container()};
  }
  allocation.asked = now;
  return allocation;
}

Result<std::string> read_text(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::string();
  if (!file) return fail_errno("cannot open " + path, errno);
  auto text = read_all(file.get(), kMostBytes);
  if (!text) return fail_errno("cannot read " + path, errno);
  return std::move(*text);
}

bool share_some(const std::set<Device>& a, const std::set<Device>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Device& device) { return b.contains(device); });
}

}  // namespace

Result<AllocationBook> AllocationBook::open(std::string file, TimePoint now) {
  AllocationBook book(std::move(file));
  GPUROTA_ASSIGN_OR_RETURN(const std::string text, read_text(book.file_));
  stored::Allocations rows;
  const auto damaged = [&book](const std::string& why) {
    return fail(
        Code::kIo,
        fmt::format("{} is not as it was written ({}): put back a copy of it, or remove it, "
                    "and delete the pods of this node that have GPUs",
                    book.file_, why));
  };
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &rows)) return damaged(error.text);
  for (const stored::Allocation& row : rows.allocations()) {
    auto allocation = allocation_of(row, now);
    if (!allocation) return damaged(allocation.error().message);
    book.allocations_.emplace(allocation->id, std::move(*allocation));
  }
  return book;
}

Result<void> AllocationBook::store() const {
  stored::Allocations rows;
  for (const auto& [id, allocation] : allocations_) *rows.add_allocations() = row_of(allocation);
  std::string text;
  google::protobuf::TextFormat::PrintToString(rows, &text);
  return replace_file(file_, text, kOwnFile);
}

Result<AllocationBook::Made> AllocationBook::add(Allocation allocation) {
  Made made;
  const auto before = allocations_;
  for (auto at = allocations_.begin(); at != allocations_.end();) {
    const bool same = at->second.resource == allocation.resource &&
                      share_some(at->second.devices, allocation.devices);
    if (same) made.over.push_back(at->second);
    at = same ? allocations_.erase(at) : std::next(at);
  }
  const std::string id = allocation.id;
  made.made = &(allocations_[id] = std::move(allocation));
  if (auto stored = store(); !stored) {
    allocations_ = before;
    return tl::unexpected(std::move(stored).error().context("cannot store what a container has"));
  }
  return made;
}

Allocation* AllocationBook::find(Resource resource, const std::set<Device>& devices) {
  for (auto& [id, allocation] : allocations_) {
    if (allocation.resource == resource && allocation.devices == devices) return &allocation;
  }
  return nullptr;
}

Allocation* AllocationBook::find(const std::string& id) {
  const auto at = allocations_.find(id);
  return at == allocations_.end() ? nullptr : &at->second;
}

Result<void> AllocationBook::name(Allocation& allocation, const proto::Pod& pod) {
  if (allocation.pod == pod) return {};
  allocation.pod = pod;
  return store();
}

}  // namespace gpurota::kube
