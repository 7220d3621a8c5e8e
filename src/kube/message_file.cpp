#include "kube/message_file.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"
#include "base/text.h"

#include <fmt/format.h>

#include <cerrno>

#include <fcntl.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

namespace gpurota::kube {
namespace {

constexpr mode_t kOwnFile = 0600;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// Keeps the first error instead of printing it.
struct FirstError final : google::protobuf::io::ErrorCollector {
  void AddError(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    if (text.empty()) text = fmt::format("line {}: {}", line + 1, display_text(message));
  }
  std::string text;
};

Result<std::string> read_text(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::string();
  if (!file) return fail_errno("cannot open " + path, errno);
  auto text = read_all(file.get(), kMostBytes);
  if (!text) return fail_errno("cannot read " + path, errno);
  return std::move(*text);
}

}  // namespace

Result<void> read_message(const std::string& file, google::protobuf::Message& message) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string text, read_text(file));
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &message)) return damaged_file(file, error.text);
  return {};
}

Result<void> store_message(const std::string& file, const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return replace_file(file, text, kOwnFile);
}

tl::unexpected<Error> damaged_file(const std::string& file, const std::string& why) {
  return fail(Code::kIo,
              fmt::format("{} is not as it was written ({}): put back a copy of it, or remove it, "
                          "and delete the pods of this node that have GPUs",
                          file, why));
}

}  // namespace gpurota::kube
