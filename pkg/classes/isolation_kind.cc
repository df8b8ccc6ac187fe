// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include "pkg/classes/class_kinds.h"
#include "pkg/classes/interrupt_plan.h"
#include "pkg/classes/isolation_needs.h"
#include "pkg/classes/isolation_plan.h"
#include "pkg/kube/crio_annotations.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

class IsolationKind final : public ClassKind {
 public:
  explicit IsolationKind(ClassContext context) : context_(std::move(context)) {}

  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    const bool own_cpus = !container.placement.exclusive.empty();
    StatusOr<IsolationWish> wish = IsolationOf(container.pod, container.name, config);
    if (!wish.ok()) {
      if (own_cpus)
        chosen.isolation = {.isolation = config.isolation, .source = config.isolation_source};
      return wish.status();
    }
    if (!own_cpus) {
      if (wish->affinity.any())
        chosen.AddNote("annotation irq-affinity: the container has no CPUs of its own");
      return OkStatus();
    }
    AddEnvironment(container.placement, *wish);
    chosen.AddNote(wish->note);
    std::ranges::move(AskedIsolation(wish->asked, wish->source), std::back_inserter(chosen.asked));
    chosen.isolation = *std::move(wish);
    return OkStatus();
  }
  void AtCreation(const ChosenClasses& chosen, const ClassesConfig&, bool,
                  Adjustment& adjustment) const override {
    for (const auto& [name, value] : chosen.isolation.environment)
      adjustment.Wide().environment.Set(name, std::string(value));
  }
  // A partition disturbs what runs in the cgroup already.
  bool HoldsStart(const ClassSubject& subject, const ClassesConfig&) const override {
    return subject.chosen.isolation.isolation.partition != IsolationConfig::Partition::kNone;
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override {
    if (work.config.absent == ClassesConfig::Absent::kRefuse)
      plan.absent.merge(FindAbsentIsolation(work.host.files()));
    PlanInterrupts(work, known_, plan);
    PlanIsolation(work.subjects, work.config, work.host, plan);
  }
  void Apply(const ClassWork&, ClassPlan&) override { known_.Keep(); }

 private:
  // As CRI-O sets them.
  void AddEnvironment(const Placement& placement, IsolationWish& wish) const {
    const CpuSet& own = placement.exclusive;
    if (wish.tells_housekeeping) {
      const CpuSet first{own.First()};
      const CpuSet core =
          context_.machine == nullptr ? first : context_.machine->WithSiblings(first) & own;
      wish.environment.Set("OPENSHIFT_HOUSEKEEPING_CPUS", core.ToString());
    }
    if (!wish.tells_shared) return;
    const CpuSet shared = placement.cpus.value_or(own) - own;
    if (shared.empty()) {
      wish.note.append(wish.note.empty() ? "" : "; ")
          .append(fmt::format("annotation {}: the policy gives the container no shared CPUs",
                              kCpuSharedAnnotation));
      return;
    }
    wish.environment.Set("OPENSHIFT_ISOLATED_CPUS", own.ToString());
    wish.environment.Set("OPENSHIFT_SHARED_CPUS", shared.ToString());
  }

  const ClassContext context_;
  KnownInterrupts known_;
};

}  // namespace

std::unique_ptr<ClassKind> MakeIsolationKind(const ClassContext& context) {
  return std::make_unique<IsolationKind>(context);
}

}  // namespace resmgr
