// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/rdt_masks.h"
#include "pkg/config/classes_config.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// A class of a simulated container. A value type.
struct PreviewedClass {
  std::string kind{};
  std::string name{};
  std::string source{};  // as ClassChoice::source
  // The masks, schemata and texts that the host's files would get; "": they depend on the host.
  std::string value{};

  friend bool operator==(const PreviewedClass&, const PreviewedClass&) = default;
};

// Reads the caches and the memory bandwidth of a machine from words between commas: "l3:20" and
// "l2:8" are the bits of a cache's masks, "min:2" the fewest bits of a mask, "mb:10" the step of
// memory bandwidth in percent, and "cdp" means separate masks for code and data. A level has as
// many caches as the machine, but at least one. InvalidArgument names the word.
StatusOr<RdtMachine> ParseRdtMachine(std::string_view text, const Machine& machine);

// The schemata of each class, as the daemon would write them, ordered by name; the root group is
// "system/default". Returns the errors of ComputeRdt.
StatusOr<std::vector<std::pair<std::string, std::string>>> PreviewSchemata(
    const RdtConfig& config, const RdtMachine& machine);

// CPUs that classes keep free of disturbances.
struct FreeOf {
  CpuSet interrupts{};
  CpuSet workqueues{};
};

// Chooses classes as the daemon does with a runtime that supports all kinds, and describes their
// effects. Immutable, and pure.
class ClassPreview {
 public:
  // The machine must outlive this object. Without `rdt` the classes have no schemata.
  ClassPreview(const Machine& machine, ClassesConfig config, std::optional<RdtMachine> rdt);

  // The classes of a container that is being created, or the error with which the daemon refuses
  // the creation: an unknown class, a wrong value.
  StatusOr<ChosenClasses> Choose(const ClassedContainer& container) const;
  // The classes of an existing container; leaves out classes that a creation would be refused for.
  ChosenClasses ChooseLeniently(const ClassedContainer& container) const;
  // Adds the CPUs among the container's own ones (`own`) that its classes keep free.
  void AddFree(const ChosenClasses& chosen, const CpuSet& own, FreeOf& free) const;
  // `free` is the sum of AddFree over all containers.
  std::vector<PreviewedClass> Describe(const ChosenClasses& chosen, const CpuSet& own,
                                       const FreeOf& free) const;

  const ClassesConfig& config() const { return config_; }

 private:
  void DescribeIsolation(const IsolationWish& wish, const CpuSet& own, const FreeOf& free,
                         std::vector<PreviewedClass>& classes) const;
  std::string ValueOf(std::string_view kind, std::string_view name) const;

  const Machine& machine_;
  const ClassesConfig config_;
  const std::vector<std::unique_ptr<ClassKind>> kinds_;
  std::vector<std::pair<std::string, std::string>> schemata_;
};

}  // namespace resmgr
