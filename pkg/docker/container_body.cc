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

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
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
  ForEachElement(list, [&texts](std::string_view value) { texts.push_back(TextOf(value)); });
  return texts;
}

// One member of an object, read into the field of its name. A null leaves a field unchanged, as in
// Go.
class BodyMember {
 public:
  BodyMember(std::string_view name, std::string_view value, Status& status)
      : name_(name), value_(value), status_(status) {}

  void Integer(std::string_view field, int64_t& into) const {
    if (!Is(field) || IsJsonNull(value_)) return;
    const auto number = ParseInt(value_);
    if (!number) return Fail(field, "an integer");
    into = *number;
  }
  void Text(std::string_view field, std::string& into) const {
    if (!Is(field) || IsJsonNull(value_)) return;
    if (!IsJsonText(value_)) return Fail(field, "a text");
    into = DecodeJsonText(value_);
  }
  void Flag(std::string_view field, bool& into) const {
    if (!Is(field) || IsJsonNull(value_)) return;
    if (value_ != "true" && value_ != "false") return Fail(field, "true or false");
    into = value_ == "true";
  }
  void Object(std::string_view field, const OnElement& into) const {
    if (!Is(field)) return;
    if (!IsJsonObject(value_) && !IsJsonNull(value_)) return Fail(field, "an object");
    into(value_);
  }
  void List(std::string_view field, const OnElement& into) const {
    if (!Is(field)) return;
    if (!IsJsonList(value_) && !IsJsonNull(value_)) return Fail(field, "a list");
    into(value_);
  }
  // Go's StrSlice: a string instead of a list is a list of one element.
  void Texts(std::string_view field, std::vector<std::string>& into) const {
    if (Is(field) && IsJsonText(value_)) {
      into = {DecodeJsonText(value_)};
    } else {
      List(field, [&into](std::string_view list) { into = TextsOf(list); });
    }
  }

 private:
  bool Is(std::string_view field) const { return IsField(name_, field); }
  void Fail(std::string_view field, std::string_view type) const {
    status_.Update(InvalidArgument("{} is not {}", field, type));
  }

  std::string_view name_;
  std::string_view value_;
  Status& status_;
};

// `status` gets the first error.
void ReadMembers(std::string_view object, Status& status,
                 const std::function<void(const BodyMember&)>& read) {
  ForEachMember(object, [&](std::string_view name, std::string_view value) {
    read(BodyMember(name, value, status));
  });
}

// Resources in HostConfig's own form.
struct RawResources {
  std::array<int64_t, kHostConfigNumbers.size()> numbers{};
  int64_t nano_cpus = 0;
  std::string cpus{};
  std::string mems{};

  void Read(const BodyMember& member) {
    for (size_t i = 0; i < numbers.size(); ++i)
      member.Integer(kHostConfigNumbers[i].name, numbers[i]);
    member.Integer("NanoCpus", nano_cpus);
    member.Text("CpusetCpus", cpus);
    member.Text("CpusetMems", mems);
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
    ReadMembers(text, status_, [this](const BodyMember& member) {
      member.Object("Labels", [this](std::string_view labels) { ReadLabels(labels); });
      member.Object("HostConfig", [this](std::string_view config) { ReadHostConfig(config); });
      member.List("Env", [this](std::string_view list) { ReadEnvironment(list); });
      member.Text("Image", body_.details.image);
      member.Texts("Cmd", body_.details.args);
      member.Texts("Entrypoint", body_.details.command);
      member.Text("User", user_);
      member.Text("Cpuset", cpuset_);
      beside_.Read(member);
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
      labels_[DecodeJsonText(name)] = TextOf(value);
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
    ReadMembers(config, status_, [this](const BodyMember& member) {
      raw_.Read(member);
      member.Text("CgroupParent", body_.cgroup_parent);
      member.Text("Runtime", body_.runtime);
      member.List("Binds", [this](std::string_view list) { ReadBinds(list); });
      member.List("Mounts", [this](std::string_view list) { ReadMounts(list); });
      member.List("Devices", [this](std::string_view list) { ReadDevices(list); });
      member.List("Ulimits", [this](std::string_view list) { ReadLimits(list); });
      member.List("SecurityOpt", [this](std::string_view list) { ReadOptions(list); });
      ContainerSecurity& security = body_.details.security;
      member.Flag("Privileged", security.privileged);
      ReadMode(member, "NetworkMode", security.network);
      ReadMode(member, "PidMode", security.pid);
      ReadMode(member, "IpcMode", security.ipc);
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
      ReadMembers(element, status_, [&, this](const BodyMember& member) {
        member.Text("Type", type);
        member.Text("Source", mount.host_path);
        member.Text("Target", mount.container_path);
        member.Flag("ReadOnly", mount.read_only);
        member.Object("BindOptions", [&, this](std::string_view options) {
          if (!IsJsonObject(options)) return;
          ReadMembers(options, status_, [&](const BodyMember& option) {
            std::string propagation;
            option.Text("Propagation", propagation);
            if (!propagation.empty()) mount.propagation = PropagationOf(propagation);
            option.Flag("NonRecursive", mount.non_recursive);
          });
        });
      });
      if (type == "bind") mounts_.push_back(std::move(mount));
    });
  }
  void ReadDevices(std::string_view list) {
    body_.details.devices.clear();
    ForEachObject(list, [this](std::string_view element) {
      Device device;
      ReadMembers(element, status_, [&device](const BodyMember& member) {
        member.Text("PathOnHost", device.host_path);
        member.Text("PathInContainer", device.container_path);
        member.Text("CgroupPermissions", device.permissions);
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
      ReadMembers(element, status_, [&](const BodyMember& member) {
        member.Text("Name", type);
        member.Integer("Hard", hard);
        member.Integer("Soft", soft);
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
  static void ReadMode(const BodyMember& member, std::string_view field, NamespaceMode& into) {
    std::string mode;
    member.Text(field, mode);
    if (mode.empty()) return;
    into = mode == "host"                   ? NamespaceMode::kNode
           : mode.starts_with("container:") ? NamespaceMode::kPod
                                            : NamespaceMode::kContainer;
  }

  Status status_;
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
  RawResources raw;
  ReadMembers(object, status, [&raw](const BodyMember& member) { raw.Read(member); });
  return raw;
}

StatusOr<std::string_view> ObjectIn(std::string_view body) {
  RESMGR_RETURN_IF_ERROR(CheckJson(body));
  const std::string_view object = Trim(body);
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
