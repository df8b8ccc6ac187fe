// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace resmgr {

// The calls that stages may look at, under the names that the CRI has for them. Front doors of
// other protocols map theirs onto these. Everything else is kOther and passes.
enum class Operation {
  kOther,
  kRunPodSandbox,
  kStopPodSandbox,
  kRemovePodSandbox,
  kCreateContainer,
  kStartContainer,
  kStopContainer,
  kRemoveContainer,
  kUpdateContainerResources,
  kContainerStatus,
  kUpdatePodSandboxResources,
};

// A set of operations. A value type, immutable.
class OperationSet {
 public:
  constexpr OperationSet() = default;
  constexpr OperationSet(std::initializer_list<Operation> operations) {
    for (const Operation operation : operations)
      bits_ |= Bit(operation);
  }
  // All but kOther.
  static constexpr OperationSet All() {
    OperationSet all;
    all.bits_ = ~Bit(Operation::kOther);
    return all;
  }

  constexpr bool contains(Operation operation) const { return (bits_ & Bit(operation)) != 0; }
  constexpr OperationSet operator|(OperationSet other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  static constexpr uint32_t Bit(Operation operation) {
    return uint32_t{1} << static_cast<uint32_t>(operation);
  }

  uint32_t bits_ = 0;
};

}  // namespace resmgr
