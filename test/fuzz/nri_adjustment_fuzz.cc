// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/stubs/logging.h>

#include "pkg/api/nri.pb.h"
#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/adjustment_edits.h"
#include "pkg/cri/cri_request.h"
#include "pkg/cri/messages.h"
#include "pkg/nri/host/mapping/adjustment_mapping.h"
#include "pkg/nri/host/view/object_views.h"
#include "pkg/nri/testing/messages.h"

namespace {

namespace host = resmgr::nri;
using ::runtime::v1::CreateContainerRequest;

// The parts that no adjustment may change.
bool IsUntouched(const CreateContainerRequest& before, const CreateContainerRequest& after) {
  for (const auto& [key, value] : before.config().annotations()) {
    if (!key.starts_with("io.kubernetes.") || key.starts_with("io.kubernetes.cri.")) continue;
    const auto found = after.config().annotations().find(key);
    if (found == after.config().annotations().end() || found->second != value) return false;
  }
  return before.pod_sandbox_id() == after.pod_sandbox_id() &&
         before.config().labels_size() == after.config().labels_size() &&
         before.config().metadata().name() == after.config().metadata().name();
}

std::vector<std::string> PathsOf(const CreateContainerRequest& request) {
  std::vector<std::string> paths;
  for (const auto& mount : request.config().mounts())
    paths.push_back(mount.container_path());
  return paths;
}

}  // namespace

// The first byte is the length of the CreateContainerRequest in units of four bytes; the rest is a
// ContainerAdjustment. For any adjustment the request stays valid, has each wanted mount once, and
// keeps all fields that no plugin may change.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer silent;
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string_view request_bytes = bytes.substr(0, size_t{data[0]} * 4);
  bytes.remove_prefix(request_bytes.size());
  CreateContainerRequest request;
  host::api::ContainerAdjustment wanted;
  if (!request.ParseFromArray(request_bytes.data(), static_cast<int>(request_bytes.size())) ||
      !wanted.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return 0;
  }
  resmgr::CreateRequest create;
  resmgr::CreateParts parts;
  if (!resmgr::DecodeCreateContainer(request_bytes, create, parts).ok()) return 0;
  resmgr::ContainerDetails details;
  if (!resmgr::DecodeDetails(parts.config, parts.sandbox_config, resmgr::kAllDetails, details)) {
    return 0;
  }
  const host::GivenContainer pristine(host::ToContainer(create, details, nullptr, {}));
  const std::vector<host::OwnedField> owners;
  const host::UnsupportedPolicy policy;
  const host::RuntimeTraits traits;
  const host::MappingContext context{.details = details,
                                     .pristine = pristine,
                                     .owners = owners,
                                     .policy = policy,
                                     .traits = traits};
  auto mapped = host::MapAdjustment(wanted, context);
  if (!mapped.ok()) return 0;
  host::FoundFiles found{.seccomp_profile = "/profile"};
  for (const host::WantedDevice& wanted_device : mapped->host_files.devices) {
    found.devices.push_back({.path = "/dev/found",
                             .mode = wanted_device.mode.value_or(0),
                             .uid = wanted_device.uid.value_or(0),
                             .gid = wanted_device.gid.value_or(0)});
  }
  found.below.resize(mapped->host_files.mounts.size());
  if (!host::AddHostFiles(found, context, *mapped).ok()) __builtin_trap();
  const auto spliced = resmgr::SpliceAdjustment(resmgr::Operation::kCreateContainer, request_bytes,
                                                mapped->adjustment);
  if (!spliced.ok()) __builtin_trap();
  CreateContainerRequest after;
  if (!after.ParseFromString(spliced->ToString()) || !IsUntouched(request, after)) {
    __builtin_trap();
  }
  const std::vector<std::string> paths = PathsOf(after);
  if (mapped->adjustment.wide() == nullptr) return 0;
  for (const auto& edit : mapped->adjustment.wide()->mounts) {
    const auto count = std::count(paths.begin(), paths.end(), edit.key);
    if (count != (edit.value ? 1 : 0)) __builtin_trap();
  }
  return 0;
}
