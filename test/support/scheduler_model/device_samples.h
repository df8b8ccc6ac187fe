// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace resmgr::test {

// Objects for tests of the model.

inline constexpr char kSampleDriver[] = "dra.cpu";

// A device of CPUs that claims share; `policy` may be null.
inline nlohmann::json SampleDevice(const std::string& name, int numa, const std::string& cpus,
                                   const nlohmann::json& policy) {
  nlohmann::json device = {{"name", name}, {"allowMultipleAllocations", true}};
  device["attributes"]["resource.kubernetes.io/numaNode"] = {{"int", numa}};
  device["attributes"]["dra.cpu/socketID"] = {{"int", 0}};
  device["capacity"]["dra.cpu/cpu"]["value"] = cpus;
  if (!policy.is_null()) device["capacity"]["dra.cpu/cpu"]["requestPolicy"] = policy;
  return device;
}

inline nlohmann::json SampleSlice(nlohmann::json devices, int generation = 1, int count = 1) {
  return {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"spec",
       {{"driver", kSampleDriver},
        {"nodeName", "worker-1"},
        {"pool", {{"name", "worker-1"}, {"generation", generation}, {"resourceSliceCount", count}}},
        {"devices", std::move(devices)}}}};
}

// Whole CPUs from 1 on.
inline nlohmann::json WholeCpus() {
  return {{"default", "1"}, {"validRange", {{"min", "1"}, {"step", "1"}}}};
}

// Two NUMA nodes of eight CPUs, two of which are reserved.
inline nlohmann::json SampleSlices(const nlohmann::json& policy) {
  return nlohmann::json::array(
      {SampleSlice(nlohmann::json::array({SampleDevice("cpudevnuma000", 0, "6", policy),
                                          SampleDevice("cpudevnuma001", 1, "8", policy)}))});
}

inline nlohmann::json SampleClasses() {
  const nlohmann::json selector = {{"cel", {{"expression", "device.driver == \"dra.cpu\""}}}};
  const nlohmann::json sample = {{"metadata", {{"name", kSampleDriver}}},
                                 {"spec", {{"selectors", nlohmann::json::array({selector})}}}};
  return nlohmann::json::array({sample});
}

// A request for `count` devices with `cpus` each; an empty text: no quantity.
inline nlohmann::json SampleRequest(const std::string& name, const std::string& cpus, int count = 1,
                                    const std::string& capacity = "dra.cpu/cpu") {
  nlohmann::json exactly = {
      {"deviceClassName", kSampleDriver}, {"allocationMode", "ExactCount"}, {"count", count}};
  if (!cpus.empty()) exactly["capacity"]["requests"][capacity] = cpus;
  return {{"name", name}, {"exactly", exactly}};
}

inline nlohmann::json SampleClaim(const std::string& name, std::vector<nlohmann::json> requests) {
  return {
      {"metadata",
       {{"namespace", "default"}, {"name", name}, {"uid", "8ec6fd12-bb08-4936-a857-866f50153c21"}}},
      {"spec", {{"devices", {{"requests", std::move(requests)}}}}}};
}

}  // namespace resmgr::test
