// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/messages.h"

#include <algorithm>
#include <array>
#include <span>

#include <absl/container/inlined_vector.h>

#include "pkg/base/wire.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/model/resource_fields.h"
#include "pkg/model/resources_annotation.h"
#include "pkg/model/unified_files.h"

namespace resmgr {

namespace {

// Entries of a map, views into the message. Inline room for a kubelet's usual number.
using Entries = absl::InlinedVector<StringMap::value_type, 8>;

// Labels and annotations from all occurrences of their message.
struct Texts {
  Entries labels;
  Entries annotations;
};

bool ReadMapEntry(std::string_view entry, Entries& entries) {
  std::string_view key;
  std::string_view value;
  const bool ok = ReadPair(entry, key, value);
  if (ok) entries.emplace_back(key, value);
  return ok;
}

// Most bytes of a map that are kept; entries beyond are dropped, since the map is kept as long as
// the container exists. Kubernetes has the same limit for all annotations of an object.
constexpr size_t kMostText = size_t{256} * 1024;

void Fill(StringMap& map, Entries& entries) {
  size_t left = kMostText;
  const auto beyond = std::remove_if(entries.begin(), entries.end(), [&left](const auto& entry) {
    const size_t size = entry.first.size() + entry.second.size();
    if (size > left) return true;
    left -= size;
    return false;
  });
  entries.erase(beyond, entries.end());
  if (!entries.empty()) map = StringMap(std::span(entries.data(), entries.size()));
}

bool ReadHugepageLimit(std::string_view message, LinuxResources& resources) {
  std::string page_size;
  uint64_t limit = 0;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) page_size = field.bytes();
    if (field.field() == 2) limit = field.number();
    return true;
  });
  if (ok && !page_size.empty()) resources.hugepage_limits[page_size] = limit;
  return ok;
}

// Limit of files that are noted: there are a dozen names, and one for each size of huge pages.
constexpr size_t kMostFiles = 64;

// Reads an entry of `unified`.
bool ReadFile(std::string_view entry, std::vector<std::string>& files) {
  std::string_view name;
  const bool ok = ReadTextField(entry, 1, name);
  // Only files that set the placement, or a value that also has a field of its own, are noted. The
  // name alone tells which ones do; the value may be malformed.
  const bool says = IsPlacementFile(name) || FieldOfFile(name, "").has_value();
  if (!ok || !says || std::ranges::find(files, name) != files.end()) return ok;
  files.emplace_back(name);
  return files.size() <= kMostFiles;
}

void ReadNumber(const WireReader& field, LinuxResources& resources) {
  for (const NumberField& number : kNumberFields) {
    if (number.cri_number == field.field() && number.requested != nullptr) {
      resources.*number.requested = static_cast<int64_t>(field.number());
    }
  }
}

bool ReadLinuxResources(std::string_view message, LinuxResources& resources,
                        std::vector<std::string>* files = nullptr) {
  return ForEachField(message, [&](const WireReader& field) {
    switch (field.field()) {
      case 6:
        resources.cpuset_cpus = std::string(field.bytes());
        return true;
      case 7:
        resources.cpuset_mems = std::string(field.bytes());
        return true;
      case 8:
        return ReadHugepageLimit(field.bytes(), resources);
      case 9:
        return files == nullptr || ReadFile(field.bytes(), *files);
      default:
        ReadNumber(field, resources);
        return true;
    }
  });
}

// A section for Windows is ignored: runtimes on Linux create a Linux container anyway.
bool ReadContainerConfig(std::string_view config, CreateParts& parts, CreateRequest& request,
                         Texts& texts) {
  constexpr uint32_t kWanted = 1U << 1 | 1U << 8 | 1U << 9 | 1U << 10 | 1U << 15 | 1U << 17;
  return ForFields(config, kWanted, [&](const WireReader& field) {
    switch (field.field()) {
      case 1:  // metadata
        return ForEachField(field.bytes(), [&](const WireReader& metadata) {
          if (metadata.field() == 1) request.name = metadata.bytes();
          if (metadata.field() == 2) request.attempt = static_cast<uint32_t>(metadata.number());
          return true;
        });
      case 9:
        return ReadMapEntry(field.bytes(), texts.labels);
      case 10:
        return ReadMapEntry(field.bytes(), texts.annotations);
      case 15:  // linux
        return ForEachField(field.bytes(), [&](const WireReader& linux_field) {
          if (linux_field.field() != 1) return true;
          request.has_resources = true;
          return ReadLinuxResources(linux_field.bytes(), request.resources, &parts.files);
        });
      case 8:
      case 17:
        request.may_have_devices = true;
        return true;
      default:
        return true;
    }
  });
}

bool ReadPodMetadata(std::string_view message, Pod& pod) {
  return ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) pod.name = field.bytes();
    if (field.field() == 2) pod.uid = PodUid(field.bytes());
    if (field.field() == 3) pod.namespace_name = field.bytes();
    return true;
  });
}

bool ReadSandboxLinux(std::string_view message, Pod& pod) {
  return ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) pod.cgroup_parent = field.bytes();
    if (field.field() == 4) return ReadLinuxResources(field.bytes(), pod.overhead);
    if (field.field() == 5) return ReadLinuxResources(field.bytes(), pod.resources);
    return true;
  });
}

// Reads only the resources of the pod as a whole from a PodSandboxConfig; none if it is malformed.
void ReadPodResources(std::string_view message, std::optional<LinuxResources>& resources) {
  const bool ok = ForFields(message, 1U << 8, [&](const WireReader& sandbox) {
    return ForFields(sandbox.bytes(), 1U << 5, [&](const WireReader& linux_field) {
      if (!resources) resources.emplace();
      return ReadLinuxResources(linux_field.bytes(), *resources);
    });
  });
  if (!ok) resources.reset();
}

bool ReadSandboxConfig(std::string_view message, Pod& pod, Texts& texts) {
  return ForEachField(message, [&](const WireReader& field) {
    switch (field.field()) {
      case 1:
        return ReadPodMetadata(field.bytes(), pod);
      case 6:
        return ReadMapEntry(field.bytes(), texts.labels);
      case 7:
        return ReadMapEntry(field.bytes(), texts.annotations);
      case 8:  // linux
        return ReadSandboxLinux(field.bytes(), pod);
      default:
        return true;
    }
  });
}

// Sets the fields that are computed from others.
void CompletePod(Pod& pod, Texts& texts) {
  Fill(pod.labels, texts.labels);
  Fill(pod.annotations, texts.annotations);
  CompleteIdentity(pod);
  SetQos(pod.cgroup_parent, pod);
}

void AddResources(uint32_t field, const ResourceValues& adjustment, FieldWriter& out) {
  const size_t begin = out.Begin(field);
  const auto number = [&out](uint32_t number_field, const std::optional<int64_t>& value) {
    if (value) out.Number(number_field, static_cast<uint64_t>(*value));
  };
  number(1, adjustment.cpu_period);
  number(2, adjustment.cpu_quota);
  number(3, adjustment.cpu_shares);
  number(4, adjustment.memory_limit);
  if (adjustment.cpus) out.Bytes(6, adjustment.cpus->ToString());
  if (adjustment.mems) out.Bytes(7, adjustment.mems->ToString());
  number(10, adjustment.memory_swap_limit);
  out.End(begin);
}

// Adds an occurrence of a message to those before it.
void AddOccurrence(std::string_view bytes, std::string_view CreateParts::*part,
                   std::string CreateParts::Merged::*merged, CreateParts& parts) {
  if ((parts.*part).empty()) {
    parts.*part = bytes;
    return;
  }
  if (parts.merged == nullptr) parts.merged = std::make_unique<CreateParts::Merged>();
  std::string& whole = (*parts.merged).*merged;
  if (whole.empty()) whole = parts.*part;
  whole += bytes;
  parts.*part = whole;
}

}  // namespace

bool IsCutShort(std::string_view message) {
  WireReader reader(message);
  while (reader.Next()) {
  }
  return reader.cut_short();
}

Status DecodeCreateContainer(std::string_view message, CreateRequest& request, CreateParts& parts) {
  Texts texts;
  parts = {};
  request.may_have_devices = false;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) request.pod_id = PodSandboxId(field.bytes());
    if (field.field() == 2) {
      AddOccurrence(field.bytes(), &CreateParts::config, &CreateParts::Merged::config, parts);
      return ReadContainerConfig(field.bytes(), parts, request, texts);
    }
    if (field.field() == 3) {
      AddOccurrence(field.bytes(), &CreateParts::sandbox_config,
                    &CreateParts::Merged::sandbox_config, parts);
      ReadPodResources(field.bytes(), request.pod_resources);
    }
    return true;
  });
  if (!ok) return InvalidArgument("malformed CreateContainerRequest");
  Fill(request.labels, texts.labels);
  Fill(request.annotations, texts.annotations);
  if (request.name.empty()) request.name = ContainerNameOf(request.labels);
  return OkStatus();
}

StatusOr<Pod> DecodeSandboxConfig(std::string_view message) {
  Pod pod;
  Texts texts;
  if (!ReadSandboxConfig(message, pod, texts)) {
    return InvalidArgument("malformed PodSandboxConfig");
  }
  CompletePod(pod, texts);
  return pod;
}

StatusOr<Pod> DecodeRunPodSandbox(std::string_view message) {
  Pod pod;
  Texts texts;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) return ReadSandboxConfig(field.bytes(), pod, texts);
    if (field.field() == 2) pod.runtime_handler = field.bytes();
    return true;
  });
  if (!ok) return InvalidArgument("malformed RunPodSandboxRequest");
  CompletePod(pod, texts);
  return pod;
}

uint32_t DecodeSandboxAttempt(std::string_view message) {
  uint32_t attempt = 0;
  // The path is config.metadata.attempt.
  ForFields(message, 1U << 1, [&](const WireReader& config) {
    return ForFields(config.bytes(), 1U << 1, [&](const WireReader& metadata) {
      return ForFields(metadata.bytes(), 1U << 4, [&](const WireReader& field) {
        attempt = static_cast<uint32_t>(field.number());
        return true;
      });
    });
  });
  return attempt;
}

StatusOr<UpdateMessage> DecodeUpdateContainerResources(std::string_view message) {
  UpdateMessage decoded;
  Entries annotations;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) decoded.id = ContainerId(field.bytes());
    if (field.field() == 4) return ReadMapEntry(field.bytes(), annotations);
    if (field.field() != 2) return true;
    decoded.update.has_linux = true;
    return ReadLinuxResources(field.bytes(), decoded.update.resources, &decoded.files);
  });
  if (!ok) return InvalidArgument("malformed UpdateContainerResourcesRequest");
  Fill(decoded.update.annotations, annotations);
  return decoded;
}

StatusOr<UpdatePodMessage> DecodeUpdatePodSandboxResources(std::string_view message) {
  UpdatePodMessage decoded;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) decoded.id = PodSandboxId(field.bytes());
    if (field.field() == 2) return ReadLinuxResources(field.bytes(), decoded.update.overhead);
    if (field.field() == 3) return ReadLinuxResources(field.bytes(), decoded.update.resources);
    return true;
  });
  if (!ok) return InvalidArgument("malformed UpdatePodSandboxResourcesRequest");
  return decoded;
}

StatusOr<ContainerEvent> DecodeContainerEvent(std::string_view message) {
  using Kind = ContainerEvent::Kind;
  constexpr std::array kKinds = {Kind::kCreated, Kind::kStarted, Kind::kStopped, Kind::kDeleted};
  ContainerEvent event;
  uint64_t type = 0;  // omitted on the wire if it is 0
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) event.id = field.bytes();
    if (field.field() == 2) type = field.number();
    return true;
  });
  if (!ok) return InvalidArgument("malformed ContainerEventResponse");
  if (type < kKinds.size()) event.kind = kKinds.at(type);
  return event;
}

StatusOr<std::string_view> DecodeExited(std::string_view message) {
  constexpr uint64_t kExited = 2;
  std::string_view id;
  uint64_t state = 0;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    return field.field() != 1 || ForEachField(field.bytes(), [&](const WireReader& status) {
             if (status.field() == 1) id = status.bytes();
             if (status.field() == 3) state = status.number();
             return true;
           });
  });
  if (!ok) return InvalidArgument("malformed ContainerStatusResponse");
  return state == kExited ? id : std::string_view();
}

StatusOr<std::string_view> DecodeId(std::string_view message) {
  std::string_view id;
  if (!ReadTextField(message, 1, id)) return InvalidArgument("malformed message");
  return id;
}

void AppendCreateAdjustment(const ResourceValues& adjustment, std::string& out) {
  if (adjustment.empty()) return;
  FieldWriter request(out);
  const size_t config = request.Begin(2);
  const size_t linux_config = request.Begin(15);
  AddResources(1, adjustment, request);
  request.End(linux_config);
  request.End(config);
}

void AppendUpdateAdjustment(const ResourceValues& adjustment, std::string& out) {
  if (adjustment.empty()) return;
  FieldWriter request(out);
  AddResources(2, adjustment, request);
}

std::string EncodeUpdateRequest(const ContainerId& id, const ResourceValues& adjustment) {
  std::string bytes;
  FieldWriter(bytes).Bytes(1, id.value());
  AppendUpdateAdjustment(adjustment, bytes);
  return bytes;
}

}  // namespace resmgr
