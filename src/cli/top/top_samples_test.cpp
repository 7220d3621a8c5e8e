#include "cli/top/top_samples_test.h"

#include "cli/status/status_samples_test.h"

#include <algorithm>

namespace gpurota::cli::topview::samples {
namespace {

using namespace std::chrono_literals;
using cli::samples::in_gib;
using cli::samples::kNow;

proto::TurnLease turn(const proto::Lease& lease, const std::string& phase, int position,
                      std::chrono::milliseconds wait) {
  proto::TurnLease turn;
  turn.lease_id = lease.lease_id;
  turn.user = lease.user;
  turn.phase = phase;
  turn.position = position;
  turn.quantum_ms = 18600;
  if (wait > 0ms) turn.earliest = kNow + wait;
  return turn;
}

// The leases of GPU 0 take turns.
void add_turns(Answers& answers) {
  proto::TurnGpu& gpu = answers.turns.gpus.emplace_back();
  gpu.uuid = answers.status.gpus.at(0).uuid;
  gpu.takes_turns = true;
  const auto& leases = answers.status.leases;
  gpu.leases = {turn(leases.at(0), "waiting", 1, 3200ms), turn(leases.at(1), "holding", 0, 0ms),
                turn(leases.at(2), "waiting", 2, 21800ms), turn(leases.at(3), "waiting", 0, 0ms)};
}

void add_queue(Answers& answers) {
  proto::Request& first = answers.queue.requests.emplace_back();
  first.request_id = RequestId{7};
  first.position = 1;
  first.user = "gu_bob";
  first.since = kNow - 10min;
  first.gpus = 2;
  first.expected = kNow + 79min;
  first.wait_reason = {.code = proto::ReasonCode::kLeasedUntil,
                       .text =
                           "1 of 2 GPUs is free for it; the next is expected at {time}, when "
                           "gu_alice's reservation (L1) on GPU 0 ends",
                       .time = first.expected};
  proto::Request& second = answers.queue.requests.emplace_back();
  second.request_id = RequestId{9};
  second.position = 2;
  second.user = "gu_erin";
  second.since = kNow - 2min;
  second.gpus = 1;
  second.memory = SizeSpec{gib(40), 0};
  second.wait_reason = {.code = proto::ReasonCode::kBehindRequest,
                        .text = "waits for GPU 0: R7 of gu_bob gets it first, when L1 ends"};
}

// A request for two GPUs by their numbers: one is kept, the other is in use without a lease.
void add_request_for_two(Answers& answers) {
  proto::Request& request = answers.queue.requests.emplace_back();
  request.request_id = RequestId{7};
  request.position = 1;
  request.user = "bob";
  request.since = kNow - 12min;
  request.gpus = 2;
  request.gpu_ids = {{answers.status.gpus.at(4).uuid, answers.status.gpus.at(5).uuid}};
  request.wait_reason = {.code = proto::ReasonCode::kUnreservedUse,
                         .text =
                             "1 of 2 GPUs is free for it; 30 GiB on GPU 5 are in use without a "
                             "lease"};
}

void add_process(Answers& answers, std::size_t lease, int pid, double used) {
  const proto::Lease& of = answers.status.leases.at(lease);
  proto::Process& process = answers.processes.processes.emplace_back();
  process.pid = pid;
  process.user = of.user;
  process.gpu_uuid = of.gpus.at(0).uuid;
  process.lease_id = of.lease_id;
  process.used_bytes = in_gib(used);
  process.command = of.command;
}

void add_filler(Answers& answers) {
  proto::Filler& filler = answers.fillers.fillers.emplace_back();
  filler.name = "fold";
  filler.user = "fold";
  filler.state = "waiting";
  filler.places = {
      {.gpu = 2, .state = "free"},
      {.gpu = 3,
       .state = "busy",
       .wait_reason = {{.code = proto::ReasonCode::kLeased, .text = "a lease has GPU 3"}}}};
}

void add_jobs(Answers& answers) {
  proto::Job array;
  array.name = "sweep";
  array.user = "alice";
  array.state = "running";
  array.items = proto::ItemCounts{3, 12, 1, 0, 0, 34};
  array.detail = "3 running, 12 done, 1 failed, 34 wait";
  answers.jobs.jobs.push_back(array);
  // Neither an array that has ended nor another job has a line.
  array.state = "finished";
  answers.jobs.jobs.push_back(array);
  array.state = "running";
  array.items.reset();
  answers.jobs.jobs.push_back(array);
}

}  // namespace

std::vector<MachineSample> all_machines() {
  std::vector<MachineSample> machines;
  for (const cli::samples::Sample& sample : cli::samples::all()) {
    Answers answers;
    answers.when = kNow;
    answers.status = sample.reply;
    if (sample.name == "turns") add_turns(answers);
    if (sample.name == "server") add_request_for_two(answers);
    if (sample.name == "eight") {
      add_queue(answers);
      add_filler(answers);
      add_jobs(answers);
      add_process(answers, 2, 4001, 2.5);
      add_process(answers, 2, 4002, 0.1);
    }
    machines.push_back({sample.name, std::move(answers)});
  }
  return machines;
}

Model machine(const std::string& name) {
  const std::vector<MachineSample> machines = all_machines();
  const auto found = std::find_if(machines.begin(), machines.end(),
                                  [&](const auto& each) { return each.name == name; });
  Model model;
  for (int i = 0; i < 120; ++i) {
    Answers then = found->answers;
    for (proto::Gpu& gpu : then.status.gpus) {
      if (gpu.utilisation_percent) gpu.utilisation_percent = *gpu.utilisation_percent * i / 119;
    }
    model.take(std::move(then));
  }
  return model;
}

}  // namespace gpurota::cli::topview::samples
