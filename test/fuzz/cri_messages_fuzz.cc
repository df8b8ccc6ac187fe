// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/cri/cri_request.h"
#include "pkg/cri/held_message.h"
#include "pkg/cri/messages.h"
#include "pkg/cri/runtime_facts.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/model/unified_files.h"

// Whatever a client sends in an intercepted call is read without harm, and an appended adjustment
// never makes a readable message unreadable.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  resmgr::CreateRequest create;
  resmgr::CreateParts parts;
  if (resmgr::DecodeCreateContainer(bytes, create, parts).ok()) {
    (void)resmgr::DecodeSandboxConfig(parts.sandbox_config);
    resmgr::ContainerDetails details;
    (void)resmgr::DecodeDetails(parts.config, parts.sandbox_config, resmgr::kAllDetails, details);
    std::string edited(bytes);
    resmgr::AppendCreateAdjustment({.cpus = resmgr::CpuSet{3}}, edited);
    resmgr::CreateRequest again;
    if (!resmgr::DecodeCreateContainer(edited, again, parts).ok() ||
        again.resources.cpuset_cpus != "3") {
      __builtin_trap();
    }
  }
  // A message that passes unread because it is cut short must be one that no reader accepts.
  if (resmgr::IsCutShort(bytes) && resmgr::DecodeId(bytes).ok()) __builtin_trap();
  resmgr::Adjustment limit;
  if (resmgr::AddAsField("cpu.max", bytes, limit)) {
    const resmgr::ResourceValues& values = limit.values;
    if (values.cpu_quota.value_or(0) == 0 || values.cpu_period.value_or(1) < 1) __builtin_trap();
  }
  (void)resmgr::DecodeUpdateContainerResources(bytes);
  (void)resmgr::DecodeRunPodSandbox(bytes);
  (void)resmgr::DecodeUpdatePodSandboxResources(bytes);
  (void)resmgr::DecodeId(bytes);
  resmgr::GrpcMessageReader reader(64, [](const resmgr::GrpcMessage&) {});
  reader.Feed(bytes);
  (void)resmgr::DecompressGrpc(bytes, "gzip", 1 << 20);
  resmgr::h2::Scratch scratch;
  resmgr::h2::HeaderBlock headers;
  headers.Add("grpc-encoding", "gzip");
  resmgr::HeldMessage held(1 << 20);
  held.Add(resmgr::h2::Slice::Copy(bytes), scratch);
  if (const auto message = held.Read(headers); message.ok()) {
    const size_t length = message->size();
    held.MakeLonger(1);
    if (held.size() != resmgr::kGrpcPrefixSize + length) __builtin_trap();
  }
  return 0;
}
