// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <google/protobuf/stubs/logging.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/runtime_facts.h"

// A runtime's status of a pod sandbox and a container is read without harm, whatever its verbose
// info has: the records for hook servers and NRI plugins are made from it at the start. An even
// first byte: the rest is the info; else it is the reply itself.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer kQuiet;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 != 0) {
    (void)resmgr::ReadSandboxFacts(bytes);
    (void)resmgr::ReadContainerFacts(bytes);
    return 0;
  }
  runtime::v1::PodSandboxStatusResponse sandbox;
  sandbox.mutable_status()->set_id("p");
  sandbox.mutable_status()->mutable_metadata()->set_attempt(3);
  (*sandbox.mutable_info())["info"] = bytes;
  const auto pod = resmgr::ReadSandboxFacts(sandbox.SerializeAsString());
  if (pod.ok() && (pod->pod.id.value() != "p" || pod->attempt != 3)) std::abort();
  runtime::v1::ContainerStatusResponse status;
  status.mutable_status()->set_id("c");
  status.mutable_status()->mutable_metadata()->set_attempt(4);
  (*status.mutable_info())["info"] = bytes;
  const auto facts = resmgr::ReadContainerFacts(status.SerializeAsString());
  if (facts.ok() && (facts->container.id.value() != "c" || facts->container.attempt != 4)) {
    std::abort();
  }
  return 0;
}
