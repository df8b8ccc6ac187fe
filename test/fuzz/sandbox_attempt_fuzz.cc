// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/messages.h"
#include "test/fuzz/checks.h"

// The facts about a new sandbox for hook servers, and the id by which its records are kept, are
// read from the wire as protobuf's own classes read them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer kQuiet;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const uint32_t attempt = resmgr::DecodeSandboxAttempt(bytes);
  const auto pod = resmgr::DecodeRunPodSandbox(bytes);
  runtime::v1::RunPodSandboxRequest request;
  if (request.ParseFromString(std::string(bytes)) && !resmgr::fuzz::HasUnknown(request) &&
      !resmgr::fuzz::HasUnknown(request.config()) &&
      !resmgr::fuzz::HasUnknown(request.config().metadata())) {
    if (attempt != request.config().metadata().attempt()) std::abort();
    if (!pod.ok() || pod->runtime_handler != request.runtime_handler()) std::abort();
  }
  const auto id = resmgr::DecodeId(bytes);
  runtime::v1::StopPodSandboxRequest stop;
  if (stop.ParseFromString(std::string(bytes)) && !resmgr::fuzz::HasUnknown(stop) &&
      (!id.ok() || *id != stop.pod_sandbox_id())) {
    std::abort();
  }
  return 0;
}
