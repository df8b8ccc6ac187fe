// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/dra/driver.h"
#include "test/integration/brain/random_policies.h"
#include "test/integration/brain/scheduled_node.h"

namespace resmgr::test {

// An extended resource that nodes have and no zone lists.
inline constexpr char kRandomDevice[] = "example.com/nic";

// Pods and claims as users make them, often of the sizes that a node has just published, and of one
// CPU more or less. Thread-compatible.
class RandomRequests {
 public:
  // Requests for CPUs of their own are multiples of published.step. `shares_alone`: Burstable
  // containers ask for less than one CPU.
  RandomRequests(RandomEngine& random, const PublishedObjects& published, bool shares_alone)
      : random_(random), published_(published), shares_alone_(shares_alone) {}

  // A Pod with this name in the namespace `default`.
  nlohmann::json Pod(const std::string& name);
  // Whole CPUs of a container.
  int64_t Cpus();

  // A ResourceClaim of that namespace with this number in its name and UID, and its DeviceClasses.
  nlohmann::json Claim(uint64_t number, const dra::Driver& driver);
  static nlohmann::json Classes(const dra::Driver& driver);

 private:
  nlohmann::json Container(const std::string& name, bool guaranteed, bool best_effort);
  nlohmann::json GuaranteedResources();
  std::string CpuText(int64_t cpus);
  std::string MemoryText();
  nlohmann::json Request(const std::string& name, int count, const dra::Driver& driver);
  // The amounts of the resource that zones have.
  std::vector<int64_t> Available(const std::string& resource) const;
  bool Once(int64_t times) { return RandomOnce(random_, times); }
  int64_t Number(int64_t first, int64_t last) { return RandomNumber(random_, first, last); }

  RandomEngine& random_;
  const PublishedObjects& published_;
  const bool shares_alone_;
};

}  // namespace resmgr::test
