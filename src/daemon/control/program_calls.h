// Shared by the calls about jobs and those about fillers: how a program is described and shown.
// State thread only.
#pragma once

#include "base/result.h"
#include "daemon/control/call_context.h"
#include "daemon/control/calls.h"
#include "daemon/supervised/supervisor.h"
#include "jobs/record.h"
#include "keeper/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace gpurota::daemon {

// Where the output of a job goes; empty `word`: a file. kUnavailable: the journal is wanted, but no
// journal runs. Defined in job_methods.cpp, like restart_of().
Result<jobs::Output> output_of(const std::optional<std::string>& word);
Result<jobs::RestartPolicy> restart_of(const std::string& word);
// Reads the array of `told` (AddJob or JobDefinition) into `spec`, if there is one.
template <class Told>
Result<void> take_array(const Told& told, jobs::JobSpec& spec) {
  if (told.array && told.each) {
    return fail(Code::kInvalid, "an array has indices or a list of commands, not both");
  }
  std::optional<int> at_once = told.at_once;
  if (told.array) {
    GPUROTA_ASSIGN_OR_RETURN(const jobs::ArrayText text, jobs::parse_array(*told.array));
    if (text.at_once && at_once) {
      return fail(Code::kInvalid, fmt::format("how many run at once is said twice: %{} and {}",
                                              *text.at_once, *at_once));
    }
    if (text.at_once) at_once = text.at_once;
    spec.array = text.indices;
  } else if (told.each) {
    if (told.each->empty()) return fail(Code::kInvalid, "an array needs at least one command");
    for (const proto::ItemCommand& each : *told.each) spec.each.push_back(each.words);
    spec.array = jobs::Indices::up_to(spec.each.size());
  } else if (!at_once) {
    return {};
  }
  if (at_once) GPUROTA_TRY(jobs::check_at_once(*at_once));
  spec.at_once = at_once.value_or(jobs::kUsualAtOnce);
  return {};
}

// The jobs or fillers (`what`) that a call is about: of this name, or all of a user. Defined in
// job_methods.cpp.
Meant meant_by(const CallContext& parts, const Caller& caller, const char* what,
               const std::optional<std::string>& name, const std::optional<std::string>& user);

// `Call`: AddJob or AddFiller.
template <class Call>
jobs::JobSpec spec_of_program(const Call& call) {
  jobs::JobSpec spec;
  spec.name = call.name;
  spec.command = call.command;
  spec.workdir = call.workdir.value_or("");
  for (const proto::Variable& variable : call.environment) {
    spec.environment.emplace_back(variable.name, variable.value);
  }
  return spec;
}

// `Shown`: Job or Filler. Shows only the names of variables.
template <class Shown>
void describe_program(const Supervised& program, Shown& shown) {
  shown.name = program.spec.name;
  shown.uid = program.uid;
  shown.user = program.user;
  shown.command = program.spec.command;
  shown.workdir = program.spec.workdir;
  for (const auto& [name, value] : program.spec.environment) shown.variables.push_back(name);
}

// The most bytes of a log in the answer to a client that asks for `asked` bytes.
inline std::size_t log_bytes(std::optional<int> asked) {
  const auto most = static_cast<std::size_t>(std::max(asked.value_or(1 << 20), 0));
  return std::min(most, kMostLogBytes);
}

}  // namespace gpurota::daemon
