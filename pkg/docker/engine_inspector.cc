// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_inspector.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/percent.h"
#include "pkg/docker/body_edits.h"
#include "pkg/docker/engine_facts.h"

namespace resmgr::docker {
namespace {

constexpr std::chrono::seconds kSandboxGrace{10};

std::string PathOf(std::string_view id, std::string_view what) {
  return fmt::format("/containers/{}{}", PercentEncoded(id), what);
}

// Passes the result of `read` for the body to `done`.
template <typename Facts, typename Read>
auto ReadInto(RuntimeAccess::Done<Facts> done, Read read) {
  return [done = std::move(done), read = std::move(read)](const StatusOr<std::string>& body) {
    done(body.ok() ? StatusOr<Facts>(read(*body)) : StatusOr<Facts>(body.status()));
  };
}

}  // namespace

void EngineInspector::AskVersion(Done<Version> done) {
  brief_client_.Get("/version", ReadInto<Version>(std::move(done), ReadEngineVersion));
}

void EngineInspector::InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) {
  // dockerd does not know the pod of containers outside pods. A call to dockerd delays the answer,
  // so that `done` does not run within this function.
  if (others_ == Others::kShare && id == OthersPod().id) {
    return brief_client_.Get("/_ping",
                             ReadInto<SandboxFacts>(std::move(done), [](std::string_view) {
                               return StatusOr<SandboxFacts>(OthersFacts());
                             }));
  }
  brief_client_.Get(PathOf(id.value(), "/json"),
                    ReadInto<SandboxFacts>(std::move(done), ReadSandboxFacts));
}

void EngineInspector::InspectContainer(const ContainerId& id, Done<ContainerFacts> done) {
  brief_client_.Get(
      PathOf(id.value(), "/json"),
      ReadInto<ContainerFacts>(std::move(done), [others = others_](std::string_view body) {
        return ReadContainerFacts(body, others);
      }));
}

void EngineInspector::InspectImage(const PodSandboxId& /*pod*/, std::string_view reference,
                                   Done<ImageFacts> done) {
  brief_client_.Get(fmt::format("/images/{}/json", PercentEncoded(reference)),
                    ReadInto<ImageFacts>(std::move(done), ReadImageFacts));
}

void EngineInspector::InspectAll(Done<Everything> done) {
  const auto read_container = [others = others_](std::string_view body,
                                                 ContainerFacts& listed) -> Status {
    RESMGR_ASSIGN_OR_RETURN(listed, ReadContainerFacts(body, others));
    return OkStatus();
  };
  const auto read_sandbox = [](std::string_view body, SandboxFacts& listed) -> Status {
    RESMGR_ASSIGN_OR_RETURN(listed, ReadSandboxFacts(body));
    return OkStatus();
  };
  ListEngine(client_, others_, {}, {.sandbox = read_sandbox, .container = read_container},
             [done = std::move(done)](StatusOr<RuntimeListing::Result> result) {
               result.ok() ? done((*std::move(result)).ToEverything()) : done(result.status());
             });
}

void EngineInspector::UpdateContainer(const ContainerId& id, const ResourceChange& change,
                                      std::function<void(Status)> done) {
  auto body = MakeUpdateBody(change);
  if (!body.ok()) {
    // A call to dockerd delays the error, so that `done` does not run within this function.
    return brief_client_.Get(
        "/_ping", [why = body.status(), done = std::move(done)](const auto&) { done(why); });
  }
  brief_client_.Do("POST", PathOf(id.value(), "/update"), *body,
                   [this, id, change, done = std::move(done)](const Status& status) {
                     // A container that is limited by NanoCpus gets the same change in that form.
                     if (!WantsNanoCpus(status)) return done(status);
                     brief_client_.Do("POST", PathOf(id.value(), "/update"),
                                      *MakeUpdateBody(change, LimitedBy::kNanoCpus), done);
                   });
}

void EngineInspector::StopContainer(const ContainerId& id, std::chrono::seconds grace,
                                    std::function<void(Status)> done) {
  stop_client_.Do("POST", PathOf(id.value(), fmt::format("/stop?t={}", grace.count())), "",
                  std::move(done), grace + EngineClient::kCallTimeout);
}

void EngineInspector::StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  StopContainer(ContainerId(id.value()), kSandboxGrace, std::move(done));
}

void EngineInspector::RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  stop_client_.Do("DELETE", PathOf(id.value(), "?force=1&v=1"), "", std::move(done));
}

}  // namespace resmgr::docker
