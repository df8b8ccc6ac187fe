// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "pkg/classes/class_kinds.h"
#include "pkg/classes/cpu_plan.h"

namespace resmgr {
namespace {

class CpuKind final : public ClassKind {
 public:
  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    std::vector<KnownClass> known;
    for (const CpuClassConfig& one : config.cpu.classes)
      known.push_back({.name = one.name});
    StatusOr<ClassChoice> choice = ChooseClass("cpu", container.Ask("cpu"), known, config);
    if (!choice.ok()) {
      // Uses the class that the container has without its pod's annotations.
      const auto of_pool = container.of_pool.find("cpu");
      if (of_pool != container.of_pool.end()) {
        chosen.by_name["cpu"] = {.name = of_pool->second,
                                 .source = fmt::format("pool {}", container.placement.pool)};
      }
      return choice.status();
    }
    chosen.AddNote(choice->note);
    if (!choice->name.empty()) chosen.by_name["cpu"] = *std::move(choice);
    return OkStatus();
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override { PlanCpuClasses(work, plan); }
};

}  // namespace

std::unique_ptr<ClassKind> MakeCpuKind() {
  return std::make_unique<CpuKind>();
}

}  // namespace resmgr
