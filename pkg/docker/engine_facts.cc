// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_facts.h"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/docker/container_body.h"
#include "pkg/docker/json_text.h"

namespace resmgr::docker {
namespace {

// The value at a path of names, "" if absent. dockerd's own output has exact names.
std::string_view FieldAt(std::string_view object, std::initializer_list<std::string_view> names) {
  std::string_view at = Trim(object);
  for (const std::string_view name : names)
    at = MembersOf(at, {name})[0];
  return at;
}

std::string TextAt(std::string_view object, std::initializer_list<std::string_view> names) {
  return TextOf(FieldAt(object, names));
}

int64_t NumberAt(std::string_view object, std::initializer_list<std::string_view> names) {
  const std::string_view value = FieldAt(object, names);
  return value.empty() ? 0 : ParseInt(value).value_or(0);
}

std::vector<std::string> TextsAt(std::string_view object,
                                 std::initializer_list<std::string_view> names) {
  std::vector<std::string> texts;
  const std::string_view list = FieldAt(object, names);
  if (!IsJsonList(list)) return texts;
  ForEachElement(list, [&texts](std::string_view value) {
    if (IsJsonText(value)) texts.push_back(DecodeJsonText(value));
  });
  return texts;
}

// Nanoseconds since 1970; 0: never.
int64_t NanosecondsAt(std::string_view object, std::initializer_list<std::string_view> names) {
  static_assert(std::is_same_v<std::chrono::system_clock::duration, std::chrono::nanoseconds>);
  const auto time = TimeOf(TextAt(object, names));
  return time ? time->time_since_epoch().count() : 0;
}

// The cgroup path that dockerd passes to runc; "" if there is no parent, since dockerd then chooses
// the path.
std::string CgroupsPath(const std::string& parent, std::string_view id) {
  if (parent.empty()) return "";
  const bool systemd = parent.ends_with(".slice");
  return parent + (systemd ? ":docker:" : "/") + std::string(id);
}

struct Inspection {
  EngineDetails engine;
  CreateBody body;
};

StatusOr<Inspection> ReadInspection(std::string_view reply) {
  Inspection read;
  RESMGR_ASSIGN_OR_RETURN(read.engine, ReadContainerDetails(reply));
  RESMGR_ASSIGN_OR_RETURN(
      read.body, ReadInspectedBody(FieldAt(reply, {"Config"}), FieldAt(reply, {"HostConfig"})));
  return read;
}

StatusOr<RuntimeListing::Objects> ReadListing(std::string_view body, Others others) {
  const auto all = ReadContainerList(body);
  if (!all.ok()) return Annotate(all.status(), "the Docker engine's list");
  RuntimeListing::Objects objects;
  for (const EngineContainer& container : *all) {
    const Identity identity = IdentityOf(container.labels, container.name, others);
    if (identity.kind == Identity::Kind::kSandbox) {
      SandboxFacts& facts = objects.sandboxes.emplace_back();
      facts.pod = ToPod(container, identity);
      facts.pod.qos_derived = true;  // until the inspection states the class
      facts.ready = !container.ended;
    } else if (identity.kind == Identity::Kind::kContainer) {
      objects.containers.emplace_back().container = ToContainer(container, identity);
    }
  }
  return objects;
}

// Inspects one container for a RuntimeListing.
template <typename Facts>
auto Inspects(EngineClient& client, std::string_view (*id_of)(const Facts&),
              std::function<Status(std::string_view, Facts&)> read) {
  return [&client, id_of, read = std::move(read)](Facts& listed,
                                                  std::function<void(const Status&)> done) {
    client.Get(fmt::format("/containers/{}/json", PercentEncoded(id_of(listed))),
               [&listed, read, done = std::move(done)](const StatusOr<std::string>& body) {
                 done(body.ok() ? read(*body, listed) : body.status());
               });
  };
}

}  // namespace

StatusOr<RuntimeAccess::Version> ReadEngineVersion(std::string_view body) {
  RESMGR_RETURN_IF_ERROR(CheckJson(body));
  RuntimeAccess::Version version{.name = "docker", .version = TextAt(body, {"Version"})};
  if (version.version.empty()) return InvalidArgument("the Docker engine tells no version");
  return version;
}

StatusOr<SandboxFacts> ReadSandboxFacts(std::string_view body) {
  RESMGR_ASSIGN_OR_RETURN(const Inspection read, ReadInspection(body));
  const EngineContainer& container = read.engine.container;
  const Identity identity = ReadIdentity(container.labels, container.name);
  if (identity.kind != Identity::Kind::kSandbox) {
    return NotFound("container {} is not a pod sandbox", container.id.value());
  }
  SandboxFacts facts;
  facts.pod = ToPod(container, identity);
  AddCgroup(read.engine.cgroup_parent, facts.pod);
  facts.pod.runtime_handler = read.engine.runtime;
  facts.attempt = identity.attempt;
  facts.ready = !container.ended;
  facts.pid = static_cast<uint32_t>(NumberAt(body, {"State", "Pid"}));
  if (auto address = TextAt(body, {"NetworkSettings", "IPAddress"}); !address.empty()) {
    facts.ips.push_back(std::move(address));
  }
  facts.cgroups_path = CgroupsPath(read.engine.cgroup_parent, container.id.value());
  return facts;
}

StatusOr<ContainerFacts> ReadContainerFacts(std::string_view body, Others others) {
  RESMGR_ASSIGN_OR_RETURN(Inspection read, ReadInspection(body));
  const EngineContainer& container = read.engine.container;
  const Identity identity = IdentityOf(container.labels, container.name, others);
  if (identity.kind != Identity::Kind::kContainer) {
    return NotFound("container {} does not belong to a pod", container.id.value());
  }
  ContainerFacts facts;
  facts.container = ToContainer(container, identity);
  facts.container.resources = read.engine.resources;
  facts.container.started_at = read.engine.started_at;
  facts.pid = static_cast<uint32_t>(NumberAt(body, {"State", "Pid"}));
  facts.created_at = NanosecondsAt(body, {"Created"});
  facts.started_at = NanosecondsAt(body, {"State", "StartedAt"});
  facts.finished_at = NanosecondsAt(body, {"State", "FinishedAt"});
  facts.exit_code = static_cast<int32_t>(NumberAt(body, {"State", "ExitCode"}));
  if (FieldAt(body, {"State", "OOMKilled"}) == "true") facts.reason = "OOMKilled";
  facts.message = TextAt(body, {"State", "Error"});
  facts.image = read.body.details.image;
  facts.cgroups_path = CgroupsPath(read.engine.cgroup_parent, container.id.value());
  facts.details = std::move(read.body.details);
  return facts;
}

StatusOr<ImageFacts> ReadImageFacts(std::string_view body) {
  RESMGR_RETURN_IF_ERROR(CheckJson(body));
  if (!IsJsonObject(Trim(body)))
    return InvalidArgument("the image's inspection is not a JSON object");
  ImageFacts facts;
  facts.entrypoint = TextsAt(body, {"Config", "Entrypoint"});
  facts.command = TextsAt(body, {"Config", "Cmd"});
  for (const std::string& text : TextsAt(body, {"Config", "Env"}))
    facts.environment.AddText(text);
  const std::vector<std::string> digests = TextsAt(body, {"RepoDigests"});
  if (!digests.empty()) facts.digest = digests[0];
  return facts;
}

SandboxFacts OthersFacts() {
  SandboxFacts facts;
  facts.pod = OthersPod();
  facts.ready = true;
  return facts;
}

void ListEngine(EngineClient& client, Others others, Known known, InspectionReaders readers,
                RuntimeListing::Done<RuntimeListing::Result> done) {
  const auto list = [&client, others](RuntimeListing::Done<RuntimeListing::Objects> listed) {
    client.Get("/containers/json?all=1",
               [others, listed = std::move(listed)](const StatusOr<std::string>& body) {
                 body.ok() ? listed(ReadListing(*body, others)) : listed(body.status());
               });
  };
  RuntimeListing::Start(
      {.list = list,
       .sandbox = Inspects<SandboxFacts>(
           client, [](const SandboxFacts& facts) { return facts.pod.id.value(); },
           std::move(readers.sandbox)),
       .container = Inspects<ContainerFacts>(
           client, [](const ContainerFacts& facts) { return facts.container.id.value(); },
           std::move(readers.container)),
       .unavailable_is_loss = true},
      std::move(known), [done = std::move(done)](StatusOr<RuntimeListing::Result> result) {
        const auto is_other = [](const ContainerFacts& facts) {
          return facts.container.pod_id == OthersPod().id;
        };
        if (result.ok() && std::ranges::any_of(result->containers, is_other))
          result->sandboxes.push_back(OthersFacts());
        done(std::move(result));
      });
}

}  // namespace resmgr::docker
