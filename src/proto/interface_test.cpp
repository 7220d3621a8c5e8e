// dev.gpurota.varlink and the structs say the same: each type, method and error, each field with
// its name and type, in the same order.
#include "proto/fields.h"
#include "proto/service.h"
#include "proto/words.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <string>
#include <vector>

namespace gpurota::proto {
namespace {

// "type Gpu" -> "(index:int,uuid:string,…)", "method Start" -> "(…)->(…)", "error Denied" -> "(…)".
using Members = std::map<std::string, std::string>;

std::string without_comments(std::string_view text) {
  std::string out;
  for (bool comment = false; const char c : text) {
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (!comment) out.push_back(c);
  }
  return out;
}

Members members_of_file() {
  const std::string text = without_comments(interface_text());
  Members members;
  for (const std::string keyword : {"type ", "method ", "error "}) {
    for (std::size_t at = text.find("\n" + keyword); at != std::string::npos;
         at = text.find("\n" + keyword, at + 1)) {
      const std::size_t name = at + 1 + keyword.size(), open = text.find('(', name);
      std::size_t end = text.find("\n\n", name);
      for (const char* next : {"\ntype ", "\nmethod ", "\nerror "}) {
        end = std::min(end, text.find(next, name));
      }
      std::string key = keyword + text.substr(name, open - name), value;
      while (key.back() == ' ') key.pop_back();
      for (const char c : text.substr(open, end - open)) {
        if (std::isspace(static_cast<unsigned char>(c)) == 0) value.push_back(c);
      }
      members[key] = value;
    }
  }
  return members;
}

template <class T>
struct Named {
  static std::string name() {
    if constexpr (std::is_same_v<T, bool>) return "bool";
    if constexpr (std::is_same_v<T, Bytes> || std::is_integral_v<T>) return "int";
    return "string";  // texts, ids, times and words
  }
};
template <class T>
struct Named<std::optional<T>> {
  static std::string name() { return "?" + Named<T>::name(); }
};
template <class T>
struct Named<std::vector<T>> {
  static std::string name() { return "[]" + Named<T>::name(); }
};
#define GPUROTA_NAMED(T, text)                 \
  template <>                                  \
  struct Named<T> {                            \
    static std::string name() { return text; } \
  };
GPUROTA_NAMED(SizeSpec, "Size")
GPUROTA_NAMED(Gpu, "Gpu")
GPUROTA_NAMED(LeaseGpu, "LeaseGpu")
GPUROTA_NAMED(Lease, "Lease")
GPUROTA_NAMED(Process, "Process")
GPUROTA_NAMED(FoundProcess, "FoundProcess")
GPUROTA_NAMED(Finding, "Finding")
GPUROTA_NAMED(Event, "Event")
GPUROTA_NAMED(ReportRow, "ReportRow")
GPUROTA_NAMED(Request, "Request")
GPUROTA_NAMED(Job, "Job")
GPUROTA_NAMED(JobRun, "JobRun")
GPUROTA_NAMED(Filler, "Filler")
GPUROTA_NAMED(FillerPlace, "FillerPlace")
GPUROTA_NAMED(JobDefinition, "JobDefinition")
GPUROTA_NAMED(JobChange, "JobChange")
GPUROTA_NAMED(Variable, "Variable")
GPUROTA_NAMED(Check, "Check")
GPUROTA_NAMED(EventCount, "EventCount")
GPUROTA_NAMED(Waits, "Waits")
GPUROTA_NAMED(TurnLease, "TurnLease")
GPUROTA_NAMED(TurnSwitch, "TurnSwitch")
GPUROTA_NAMED(TurnGpu, "TurnGpu")

template <class T>
std::string fields_of() {
  std::string out = "(";
  T object;
  visit(
      [&]<class F>(const char* name, F&) {
        if (out.size() > 1) out += ",";
        out += name + (":" + Named<F>::name());
      },
      object);
  return out + ")";
}

template <class Method>
void add_method(Members& members) {
  const std::string_view full = Method::kMethod;
  if (!full.starts_with("dev.gpurota.")) return;
  members["method " + std::string(full.substr(12))] =
      fields_of<Method>() + "->" + fields_of<typename Method::Reply>();
}

Members members_of_codec() {
  Members members{{"type Size", "(bytes:?int,percent:?int)"}};
  members["type Gpu"] = fields_of<Gpu>();
  members["type LeaseGpu"] = fields_of<LeaseGpu>();
  members["type Lease"] = fields_of<Lease>();
  members["type Process"] = fields_of<Process>();
  members["type FoundProcess"] = fields_of<FoundProcess>();
  members["type Finding"] = fields_of<Finding>();
  members["type Event"] = fields_of<Event>();
  members["type ReportRow"] = fields_of<ReportRow>();
  members["type Request"] = fields_of<Request>();
  members["type Filler"] = fields_of<Filler>();
  members["type FillerPlace"] = fields_of<FillerPlace>();
  members["type Job"] = fields_of<Job>();
  members["type JobRun"] = fields_of<JobRun>();
  members["type JobDefinition"] = fields_of<JobDefinition>();
  members["type JobChange"] = fields_of<JobChange>();
  members["type Variable"] = fields_of<Variable>();
  members["type Check"] = fields_of<Check>();
  members["type EventCount"] = fields_of<EventCount>();
  members["type Waits"] = fields_of<Waits>();
  members["type TurnLease"] = fields_of<TurnLease>();
  members["type TurnSwitch"] = fields_of<TurnSwitch>();
  members["type TurnGpu"] = fields_of<TurnGpu>();
#define GPUROTA_ADD(M) add_method<M>(members);
  GPUROTA_FOR_EACH_METHOD(GPUROTA_ADD)
  for (const std::string_view error :
       {kInvalidRequest, kNotFound, kDenied, kLimitExceeded, kUnavailable, kFailed}) {
    members["error " + std::string(error.substr(12))] = "(message:string)";
  }
  members["error NoGpu"] = "(message:string,free:int,total:int)";
  return members;
}

// The comment behind a field lists the words an enum may be.
template <class Enum>
void expect_words_documented(const std::string& type, const std::string& field) {
  const std::string text(interface_text());
  std::size_t at = text.find("\n" + type);
  ASSERT_NE(at, std::string::npos) << type;
  at = text.find(" " + field + ":", at);
  ASSERT_NE(at, std::string::npos) << type << " " << field;
  const std::string line = text.substr(at, text.find('\n', at + 1) - at);
  for (std::size_t i = 1; i < Words<Enum>::kAll.size(); ++i) {
    EXPECT_NE(line.find(Words<Enum>::kAll[i]), std::string::npos)
        << Words<Enum>::kAll[i] << " is not in: " << line;
  }
}

TEST(Interface, FileAndCodecHaveTheSameTypesMethodsAndErrors) {
  const Members file = members_of_file(), codec = members_of_codec();
  for (const auto& [name, value] : file) {
    ASSERT_TRUE(codec.contains(name)) << name << " is in the file only";
    EXPECT_EQ(value, codec.at(name)) << name;
  }
  for (const auto& [name, value] : codec) {
    EXPECT_TRUE(file.contains(name)) << name << " is in the codec only";
  }
}

TEST(Interface, EveryWordOfAnEnumIsDocumentedAtItsField) {
  expect_words_documented<GpuState>("type Gpu", "state");
  expect_words_documented<LeaseKind>("type Lease", "kind");
  expect_words_documented<Share>("type Lease", "share");
  expect_words_documented<LeaseState>("type Lease", "state");
  expect_words_documented<ProcessType>("type Process", "type");
  expect_words_documented<LibraryState>("type Process", "library");
  expect_words_documented<FindingKind>("type Finding", "kind");
  expect_words_documented<FindingAction>("type Finding", "action");
  expect_words_documented<EventType>("type Event", "type");
  expect_words_documented<CheckStatus>("type Check", "status");
  expect_words_documented<Ended>("method Hold", "ended");
}

TEST(Interface, DescribesItselfAndTheServiceInterface) {
  const ServiceInfo::Reply info = service_info();
  EXPECT_EQ(info.product, "gpurotad");
  EXPECT_FALSE(info.version.empty());
  for (const std::string& interface : info.interfaces) {
    const auto description = describe_interface(interface);
    ASSERT_TRUE(description.has_value()) << interface;
    EXPECT_NE(description->description.find("interface " + interface), std::string::npos);
  }
}

TEST(Interface, UnknownInterfaceIsTheStandardError) {
  const auto description = describe_interface("com.example");
  ASSERT_FALSE(description.has_value());
  EXPECT_EQ(description.error().name, kInterfaceNotFound);
  EXPECT_EQ(description.error().subject, "com.example");
}

}  // namespace
}  // namespace gpurota::proto
