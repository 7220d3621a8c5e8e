#include "jobs/start_order.h"

#include "base/text.h"

#include <fmt/format.h>

#include <map>

namespace gpurota::jobs {
namespace {

enum class Mark { kNew, kOpen, kDone };

// Depth first with a stack of its own: a chain may be as long as there are jobs.
class Sorter {
 public:
  Sorter(const std::vector<Ordered>& jobs, const char* option)
      : jobs_(jobs), option_(option), marks_(jobs.size(), Mark::kNew) {
    for (std::size_t i = 0; i < jobs.size(); ++i) index_.emplace(jobs[i].name, i);
  }

  Result<std::vector<std::size_t>> sort() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (marks_[i] == Mark::kNew) GPUROTA_TRY(visit(i));
    }
    return order_;
  }

 private:
  struct Step {
    std::size_t job;
    std::size_t next = 0;  // in its `after`
  };

  Result<void> visit(std::size_t first) {
    std::vector<Step> path = {{first}};
    marks_[first] = Mark::kOpen;
    while (!path.empty()) {
      Step& step = path.back();
      const auto& after = jobs_[step.job].after;
      if (step.next == after.size()) {
        marks_[step.job] = Mark::kDone;
        order_.push_back(step.job);
        path.pop_back();
        continue;
      }
      const auto found = index_.find(after[step.next++]);
      if (found == index_.end() || marks_[found->second] == Mark::kDone) continue;
      if (marks_[found->second] == Mark::kOpen) return circle(path, found->second);
      marks_[found->second] = Mark::kOpen;
      path.push_back({found->second});
    }
    return {};
  }

  tl::unexpected<Error> circle(const std::vector<Step>& path, std::size_t again) const {
    std::string names;
    bool inside = false;
    for (const Step& step : path) {
      inside = inside || step.job == again;
      if (inside) names += display_text(jobs_[step.job].name, 60) + " after ";
    }
    return fail(Code::kInvalid,
                fmt::format("jobs would wait for each other for ever: {}{}. Leave out one {}",
                            names, display_text(jobs_[again].name, 60), option_));
  }

  const std::vector<Ordered>& jobs_;
  const char* option_;
  std::vector<Mark> marks_;
  std::map<std::string, std::size_t> index_;
  std::vector<std::size_t> order_;
};

}  // namespace

Result<std::vector<std::size_t>> start_order(const std::vector<Ordered>& jobs, const char* option) {
  return Sorter(jobs, option).sort();
}

}  // namespace gpurota::jobs
