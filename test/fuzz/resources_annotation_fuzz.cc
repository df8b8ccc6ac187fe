// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pkg/model/resources_annotation.h"

// Every user who may create pods can write this text: it never gives negative needs, nor crashes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto others = resmgr::ParseOtherResources(json, "web");
  if (others.ok()) {
    for (const auto& [name, amount] : *others) {
      if (amount < 0 || name == "cpu" || name == "memory") std::abort();
    }
  }
  const auto qos = resmgr::QosFromResourcesAnnotation(json);
  resmgr::Pod pod;
  pod.annotations = {{std::string(resmgr::kResourcesAnnotation), std::string(json)}};
  resmgr::SetQos("", pod);
  if (qos.ok() && qos->has_value() && pod.qos != **qos) std::abort();
  const auto parsed = resmgr::ParseResourcesAnnotation(json, "web");
  const auto section = resmgr::FindSection(json, "web");
  const bool named = section.ok() && *section != resmgr::AnnotationSection::kNone;
  if (parsed.ok() && parsed->has_value() && !named) std::abort();
  if (!parsed.ok() || !parsed->has_value()) return 0;
  const resmgr::Requirements& needs = **parsed;
  if (needs.cpu_request.value < 0 || needs.cpu_limit.value < 0 || needs.memory_request.value < 0 ||
      needs.memory_limit.value < 0) {
    std::abort();
  }
  return 0;
}
