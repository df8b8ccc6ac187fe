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
    return AddClass("cpu", container.Ask("cpu"), known, config, chosen);
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override { PlanCpuClasses(work, plan); }
};

}  // namespace

std::unique_ptr<ClassKind> MakeCpuKind() {
  return std::make_unique<CpuKind>();
}

}  // namespace resmgr
