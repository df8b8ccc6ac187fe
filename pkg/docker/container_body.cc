// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/container_body.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/docker/characters.h"
#include "pkg/docker/docker_labels.h"
#include "pkg/docker/host_config.h"
#include "pkg/docker/json_text.h"
#include "pkg/model/resource_fields.h"

namespace resmgr::docker {
namespace {

constexpr int64_t kNanoPerCpu = 1'000'000'000;

std::vector<std::string> TextsOf(std::string_view list) {
  std::vector<std::string> texts;
  if (IsJsonNull(list)) return texts;
  ForEachElement(list, [&texts](std::string_view value) {
    texts.push_back(IsJsonText(value) ? DecodeJsonText(value) : "");
  });
  return texts;
}

// Reads the known fields of an object. A null leaves a field unchanged, as in Go.
class BodyFields {
 public:
  explicit BodyFields(Status& status) : status_(status) {}

  void Integer(std::string_view name, std::string_view value, std::string_view field,
               int64_t& into) {
    if (!Matches(name, field) || IsJsonNull(value)) return;
    if (const auto number = DecodeJsonInteger(value)) {
      into = *number;
    } else {
      Fail(field, "an integer");
    }
  }
  void Text(std::string_view name, std::string_view value, std::string_view field,
            std::string& into) {
    if (!Matches(name, field) || IsJsonNull(value)) return;
    if (IsJsonText(value)) {
      into = DecodeJsonText(value);
    } else {
      Fail(field, "a text");
    }
  }
  void Flag(std::string_view name, std::string_view value, std::string_view field, bool& into) {
    if (!Matches(name, field) || IsJsonNull(value)) return;
    if (value != "true" && value != "false") return Fail(field, "true or false");
    into = value == "true";
  }
  void Object(std::string_view name, std::string_view value, std::string_view field,
              const std::function<void(std::string_view)>& into) {
    if (!Matches(name, field)) return;
    if (IsJsonObject(value) || IsJsonNull(value)) {
      into(value);
    } else {
      Fail(field, "an object");
    }
  }
  void List(std::string_view name, std::string_view value, std::string_view field,
            const std::function<void(std::string_view)>& into) {
    if (!Matches(name, field)) return;
    if (IsJsonList(value) || IsJsonNull(value)) {
      into(value);
    } else {
      Fail(field, "a list");
    }
  }
  // Go's StrSlice: a string instead of a list is a list of one element.
  void Texts(std::string_view name, std::string_view value, std::string_view field,
             std::vector<std::string>& into) {
    if (!Matches(name, field)) return;
    if (IsJsonText(value)) {
      into = {DecodeJsonText(value)};
    } else {
      List(name, value, field, [&into](std::string_view list) { into = TextsOf(list); });
    }
  }

 private:
  static bool Matches(std::string_view name, std::string_view field) {
    return IsField(name, field);
  }
  void Fail(std::string_view field, std::string_view type) {
    status_.Update(InvalidArgument("{} is not {}", field, type));
  }

  Status& status_;
};

// Resources in HostConfig's own form.
struct RawResources {
  std::array<int64_t, kHostConfigNumbers.size()> numbers{};
  int64_t nano_cpus = 0;
  std::string cpus{};
  std::string mems{};

  void Read(std::string_view name, std::string_view value, BodyFields& fields) {
    for (size_t i = 0; i < numbers.size(); ++i)
      fields.Integer(name, value, kHostConfigNumbers[i].name, numbers[i]);
    fields.Integer(name, value, "NanoCpus", nano_cpus);
    fields.Text(name, value, "CpusetCpus", cpus);
    fields.Text(name, value, "CpusetMems", mems);
  }
  // Replaces values 0 or "" by the fields beside HostConfig that dockerd then uses (CreateBody).
  void FillFrom(const RawResources& beside, const std::string& cpuset) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Field field = kHostConfigNumbers[i].field;
      const bool both = field == Field::kCpuShares || field == Field::kMemoryLimit ||
                        field == Field::kMemorySwapLimit;
      if (both && numbers[i] == 0) numbers[i] = beside.numbers[i];
    }
    if (cpus.empty()) cpus = beside.cpus;
    if (cpus.empty()) cpus = cpuset;
  }
  void AddTo(LinuxResources& resources) const {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto requested = NumberFieldOf(kHostConfigNumbers[i].field)->requested;
      if (requested != nullptr && numbers[i] != 0) resources.*requested = numbers[i];
    }
    if (nano_cpus > 0) {
      resources.cpu_period = kNanoCpusPeriod;
      resources.cpu_quota = nano_cpus / (kNanoPerCpu / kNanoCpusPeriod);
    }
    if (!cpus.empty()) resources.cpuset_cpus = cpus;
    if (!mems.empty()) resources.cpuset_mems = mems;
  }
  // Limit of memory and swap together, in bytes.
  std::optional<int64_t> MemorySwap() const {
    const auto* const row =
        std::ranges::find(kHostConfigNumbers, Field::kMemorySwapLimit, &HostConfigNumber::field);
    const int64_t limit = numbers[static_cast<size_t>(row - kHostConfigNumbers.begin())];
    return limit != 0 ? std::optional(limit) : std::nullopt;
  }
};

Mount::Propagation PropagationOf(std::string_view option) {
  if (option == "shared" || option == "rshared") return Mount::Propagation::kBidirectional;
  if (option == "slave" || option == "rslave") return Mount::Propagation::kHostToContainer;
  return Mount::Propagation::kPrivate;
}

// Parses "HOST:CONTAINER[:OPTIONS]"; nullopt for a volume's name in place of the host's path.
std::optional<Mount> MountOf(const std::string& bind) {
  const size_t colon = bind.find(':');
  if (!bind.starts_with('/') || colon == std::string::npos) return std::nullopt;
  const size_t end = bind.find(':', colon + 1);
  Mount mount{.container_path = bind.substr(
                  colon + 1, end == std::string::npos ? std::string::npos : end - colon - 1),
              .host_path = bind.substr(0, colon)};
  const std::string options = end == std::string::npos ? "" : "," + bind.substr(end + 1) + ",";
  mount.read_only = options.find(",ro,") != std::string::npos;
  mount.selinux_relabel =
      options.find(",z,") != std::string::npos || options.find(",Z,") != std::string::npos;
  for (const std::string_view option : Split(options, ','))
    if (PropagationOf(option) != Mount::Propagation::kPrivate) {
      mount.propagation = PropagationOf(option);
    }
  return mount;
}

void ForEachObject(std::string_view list, const OnElement& on_object) {
  if (!IsJsonList(list)) return;
  ForEachElement(list, [&on_object](std::string_view element) {
    if (IsJsonObject(element)) on_object(element);
  });
}

// Parses "UID" or "UID:GID"; names are left for the image to resolve.
void AddUser(std::string_view user, ContainerSecurity& security) {
  const size_t colon = user.find(':');
  const auto uid = ParseUint(user.substr(0, colon));
  if (!uid) return;
  security.user = static_cast<int64_t>(*uid);
  if (colon == std::string_view::npos) return;
  if (const auto gid = ParseUint(user.substr(colon + 1))) {
    security.group = static_cast<int64_t>(*gid);
  }
}

// Returns the part of the details that is not in HostConfig.
ContainerDetails WithoutHostConfig(ContainerDetails details) {
  ContainerDetails kept;
  kept.environment = std::move(details.environment);
  kept.command = std::move(details.command);
  kept.args = std::move(details.args);
  kept.image = std::move(details.image);
  return kept;
}

class CreateReader {
 public:
  StatusOr<CreateBody> Read(std::string_view text) {
    ForEachMember(text, [this](std::string_view name, std::string_view value) {
      fields_.Object(name, value, "Labels",
                     [this](std::string_view labels) { ReadLabels(labels); });
      fields_.Object(name, value, "HostConfig",
                     [this](std::string_view config) { ReadHostConfig(config); });
      fields_.List(name, value, "Env", [this](std::string_view list) { ReadEnvironment(list); });
      fields_.Text(name, value, "Image", body_.details.image);
      fields_.Texts(name, value, "Cmd", body_.details.args);
      fields_.Texts(name, value, "Entrypoint", body_.details.command);
      fields_.Text(name, value, "User", user_);
      fields_.Text(name, value, "Cpuset", cpuset_);
      beside_.Read(name, value, fields_);
    });
    if (!body_.has_host_config && !MembersBesideHostConfig(text).empty()) ReadHostConfig(text);
    if (body_.has_host_config) raw_.FillFrom(beside_, cpuset_);
    return Finish();
  }
  StatusOr<CreateBody> ReadInspected(std::string_view config, std::string_view host_config) {
    if (IsJsonObject(host_config)) ReadHostConfig(host_config);
    return Read(IsJsonObject(config) ? config : "{}");
  }

 private:
  StatusOr<CreateBody> Finish() {
    if (!status_.ok()) return status_;
    std::vector<StringMap::value_type> labels(labels_.begin(), labels_.end());
    body_.labels = StringMap(labels);
    raw_.AddTo(body_.resources);
    body_.details.memory_swap_limit = raw_.MemorySwap();
    body_.details.mounts = std::move(binds_);
    std::ranges::move(mounts_, std::back_inserter(body_.details.mounts));
    body_.details.cgroup_parent = WholeCgroup(body_.cgroup_parent);
    AddUser(user_, body_.details.security);
    body_.details.security.seccomp = std::move(seccomp_);
    return std::move(body_);
  }
  void ReadLabels(std::string_view labels) {
    if (IsJsonNull(labels)) return labels_.clear();
    ForEachMember(labels, [this](std::string_view name, std::string_view value) {
      labels_[DecodeJsonText(name)] = IsJsonText(value) ? DecodeJsonText(value) : "";
    });
  }
  void ReadHostConfig(std::string_view config) {
    body_.has_host_config = !IsJsonNull(config);
    if (!body_.has_host_config) {
      raw_ = {};
      body_.cgroup_parent.clear();
      body_.runtime.clear();
      binds_.clear();
      mounts_.clear();
      seccomp_ = {};
      body_.details = WithoutHostConfig(std::move(body_.details));
      return;
    }
    ForEachMember(config, [this](std::string_view name, std::string_view value) {
      raw_.Read(name, value, fields_);
      fields_.Text(name, value, "CgroupParent", body_.cgroup_parent);
      fields_.Text(name, value, "Runtime", body_.runtime);
      fields_.List(name, value, "Binds", [this](std::string_view list) { ReadBinds(list); });
      fields_.List(name, value, "Mounts", [this](std::string_view list) { ReadMounts(list); });
      fields_.List(name, value, "Devices", [this](std::string_view list) { ReadDevices(list); });
      fields_.List(name, value, "Ulimits", [this](std::string_view list) { ReadLimits(list); });
      fields_.List(name, value, "SecurityOpt",
                   [this](std::string_view list) { ReadOptions(list); });
      ReadSecurity(name, value);
    });
  }
  void ReadEnvironment(std::string_view list) {
    body_.details.environment = {};
    // A name alone unsets the image's variable, so it adds no text.
    for (const std::string& text : TextsOf(list))
      if (text.find('=') != std::string::npos) body_.details.environment.AddText(text);
  }
  void ReadBinds(std::string_view list) {
    binds_.clear();
    for (const std::string& bind : TextsOf(list))
      if (auto mount = MountOf(bind)) binds_.push_back(*std::move(mount));
  }
  // Reads the bind mounts of the list; volumes have no host path.
  void ReadMounts(std::string_view list) {
    mounts_.clear();
    ForEachObject(list, [this](std::string_view element) {
      Mount mount;
      std::string type;
      bool read_only = false;
      ForEachMember(element, [&, this](std::string_view name, std::string_view value) {
        fields_.Text(name, value, "Type", type);
        fields_.Text(name, value, "Source", mount.host_path);
        fields_.Text(name, value, "Target", mount.container_path);
        fields_.Flag(name, value, "ReadOnly", read_only);
        fields_.Object(name, value, "BindOptions", [&, this](std::string_view options) {
          if (!IsJsonObject(options)) return;
          ForEachMember(options, [&, this](std::string_view option, std::string_view setting) {
            std::string propagation;
            fields_.Text(option, setting, "Propagation", propagation);
            if (!propagation.empty()) mount.propagation = PropagationOf(propagation);
            fields_.Flag(option, setting, "NonRecursive", mount.non_recursive);
          });
        });
      });
      mount.read_only = read_only;
      if (type == "bind") mounts_.push_back(std::move(mount));
    });
  }
  void ReadDevices(std::string_view list) {
    body_.details.devices.clear();
    ForEachObject(list, [this](std::string_view element) {
      Device device;
      ForEachMember(element, [this, &device](std::string_view name, std::string_view value) {
        fields_.Text(name, value, "PathOnHost", device.host_path);
        fields_.Text(name, value, "PathInContainer", device.container_path);
        fields_.Text(name, value, "CgroupPermissions", device.permissions);
      });
      body_.details.devices.push_back(std::move(device));
    });
  }
  void ReadLimits(std::string_view list) {
    body_.details.resource_limits.clear();
    ForEachObject(list, [this](std::string_view element) {
      std::string type;
      int64_t hard = 0;
      int64_t soft = 0;
      ForEachMember(element, [&, this](std::string_view name, std::string_view value) {
        fields_.Text(name, value, "Name", type);
        fields_.Integer(name, value, "Hard", hard);
        fields_.Integer(name, value, "Soft", soft);
      });
      std::ranges::transform(type, type.begin(), UpperCase);
      body_.details.resource_limits.push_back({.type = "RLIMIT_" + type,
                                               .hard = static_cast<uint64_t>(hard),
                                               .soft = static_cast<uint64_t>(soft)});
    });
  }
  // Reads the last seccomp profile, which counts. The client sends its text, so there is no file.
  void ReadOptions(std::string_view list) {
    using enum SeccompProfile::Kind;
    seccomp_ = {};
    for (const std::string& option : TextsOf(list)) {
      const auto profile = SeccompOf(option);
      if (!profile) continue;
      seccomp_.kind = *profile == "unconfined"                    ? kUnconfined
                      : profile->empty() || *profile == "builtin" ? kRuntimeDefault
                                                                  : kLocalhost;
    }
  }
  void ReadSecurity(std::string_view name, std::string_view value) {
    ContainerSecurity& security = body_.details.security;
    fields_.Flag(name, value, "Privileged", security.privileged);
    ReadMode(name, value, "NetworkMode", security.network);
    ReadMode(name, value, "PidMode", security.pid);
    ReadMode(name, value, "IpcMode", security.ipc);
  }
  void ReadMode(std::string_view name, std::string_view value, std::string_view field,
                NamespaceMode& into) {
    std::string mode;
    fields_.Text(name, value, field, mode);
    if (mode.empty()) return;
    into = mode == "host"                   ? NamespaceMode::kNode
           : mode.starts_with("container:") ? NamespaceMode::kPod
                                            : NamespaceMode::kContainer;
  }

  Status status_;
  BodyFields fields_{status_};
  CreateBody body_;
  RawResources raw_;
  RawResources beside_;  // fields beside HostConfig
  std::string cpuset_;   // beside HostConfig, under its oldest name
  std::vector<Mount> binds_;
  std::vector<Mount> mounts_;
  SeccompProfile seccomp_;  // dockerd's default if no option sets it
  std::string user_;
  std::map<std::string, std::string> labels_;
};

RawResources ReadRaw(std::string_view object, Status& status) {
  BodyFields fields(status);
  RawResources raw;
  ForEachMember(object, [&](std::string_view name, std::string_view value) {
    raw.Read(name, value, fields);
  });
  return raw;
}

StatusOr<std::string_view> ObjectIn(std::string_view body) {
  RESMGR_RETURN_IF_ERROR(CheckJson(body));
  const std::string_view object = TrimJson(body);
  if (!IsJsonObject(object)) return InvalidArgument("it is not a JSON object");
  size_t fields = 0;
  ForEachMember(object, [&fields](std::string_view name, std::string_view value) {
    ++fields;
    if (!IsJsonObject(value) || !IsField(name, "HostConfig")) return;
    ForEachMember(value, [&fields](std::string_view, std::string_view) { ++fields; });
  });
  if (fields <= kMostBodyFields) return object;
  return InvalidArgument("it has {} fields, more than {}", fields, kMostBodyFields);
}

}  // namespace

StatusOr<CreateBody> ReadCreateBody(std::string_view body) {
  RESMGR_ASSIGN_OR_RETURN(const std::string_view object, ObjectIn(body));
  return CreateReader().Read(object);
}

StatusOr<CreateBody> ReadInspectedBody(std::string_view config, std::string_view host_config) {
  return CreateReader().ReadInspected(config, host_config);
}

StatusOr<UpdateBody> ReadUpdateBody(std::string_view body) {
  RESMGR_ASSIGN_OR_RETURN(const std::string_view object, ObjectIn(body));
  UpdateBody read;
  Status status;
  RawResources raw = ReadRaw(object, status);
  if (!status.ok()) return status;
  raw.AddTo(read.resources);
  read.memory_swap_limit = raw.MemorySwap();
  read.has_resources = read.memory_swap_limit || read.resources != LinuxResources();
  return read;
}

Status ReadResources(std::string_view object, LinuxResources& resources) {
  Status status;
  const RawResources raw = ReadRaw(object, status);
  if (status.ok()) raw.AddTo(resources);
  return status;
}

}  // namespace resmgr::docker
