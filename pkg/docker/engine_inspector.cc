// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_inspector.h"

#include <memory>
#include <utility>
#include <vector>

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

// One run of InspectAll: the list, then an inspection of each container. Its callbacks keep it
// alive.
class EngineInspector::Inspection : public std::enable_shared_from_this<Inspection> {
 public:
  Inspection(EngineInspector& inspector, Done<Everything> done)
      : inspector_(inspector), done_(std::move(done)) {}

  void Start() {
    inspector_.Get(inspector_.client_, "/containers/json?all=1",
                   [self = shared_from_this()](const StatusOr<std::string>& body) {
                     auto all = body.ok() ? ReadContainerList(*body) : body.status();
                     if (!all.ok()) return self->Finish(all.status());
                     self->Take(*all);
                   });
  }

 private:
  void Take(const std::vector<EngineContainer>& all) {
    bool shares = false;
    for (const EngineContainer& container : all) {
      const Identity identity = IdentityOf(container.labels, container.name, inspector_.others_);
      if (identity.kind == Identity::Kind::kSandbox) {
        SandboxFacts listed;
        listed.pod = ToPod(container, identity);
        listed.ready = !container.ended;
        Inspect<SandboxFacts>(container.id.value(), ReadSandboxFacts, std::move(listed),
                              &Everything::sandboxes);
      } else if (identity.kind == Identity::Kind::kContainer) {
        shares = shares || identity.pod_id == OthersPod().id;
        ContainerFacts listed;
        listed.container = ToContainer(container, identity);
        const auto read = [others = inspector_.others_](std::string_view body) {
          return ReadContainerFacts(body, others);
        };
        Inspect<ContainerFacts>(container.id.value(), read, std::move(listed),
                                &Everything::containers);
      }
    }
    if (shares) everything_.sandboxes.push_back(OthersFacts());
    if (--pending_ == 0) Finish(OkStatus());
  }

  template <typename Facts, typename Read>
  void Inspect(std::string_view id, Read read, Facts listed, std::vector<Facts> Everything::*into) {
    ++pending_;
    const auto take = [self = shared_from_this(), read, listed = std::move(listed),
                       into](const StatusOr<std::string>& body) {
      auto facts = body.ok() ? read(*body) : StatusOr<Facts>(body.status());
      const StatusCode code = facts.status().code();
      if (code == StatusCode::kUnavailable) return self->Finish(facts.status());
      if (facts.ok()) {
        (self->everything_.*into).push_back(*std::move(facts));
      } else if (code != StatusCode::kNotFound) {
        (self->everything_.*into).push_back(listed);
      }
      if (--self->pending_ == 0) self->Finish(OkStatus());
    };
    inspector_.Get(inspector_.client_, PathOf(id, "/json"), take);
  }

  // Takes effect once: many inspections may lose dockerd.
  void Finish(const Status& status) {
    if (const auto done = std::exchange(done_, nullptr)) {
      done(status.ok() ? StatusOr<Everything>(std::move(everything_))
                       : StatusOr<Everything>(status));
    }
  }

  EngineInspector& inspector_;
  Done<Everything> done_;
  Everything everything_;
  size_t pending_ = 1;  // open inspections, plus one for the list
};

void EngineInspector::Get(EngineClient& client, const std::string& target, OnBody done) {
  client.Call("GET", target, "", kCallTimeout,
              [done = std::move(done)](StatusOr<EngineClient::Reply> reply) {
                if (!reply.ok()) return done(reply.status());
                if (const Status status = ReplyStatus(*reply); !status.ok()) return done(status);
                done(std::move(reply->body));
              });
}

void EngineInspector::Do(std::string_view method, const std::string& target, std::string body,
                         std::chrono::milliseconds deadline, std::function<void(Status)> done) {
  brief_client_.Call(method, target, std::move(body), deadline,
                     [done = std::move(done)](const StatusOr<EngineClient::Reply>& reply) {
                       done(reply.ok() ? ReplyStatus(*reply) : reply.status());
                     });
}

void EngineInspector::AskVersion(Done<Version> done) {
  Get(brief_client_, "/version", ReadInto<Version>(std::move(done), ReadEngineVersion));
}

void EngineInspector::InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) {
  // This pod does not exist in dockerd. Its answer follows a call to dockerd, so that it does not
  // come inside this call.
  if (others_ == Others::kShare && id == OthersPod().id) {
    return Get(brief_client_, "/_ping",
               ReadInto<SandboxFacts>(std::move(done), [](std::string_view) {
                 return StatusOr<SandboxFacts>(OthersFacts());
               }));
  }
  Get(brief_client_, PathOf(id.value(), "/json"),
      ReadInto<SandboxFacts>(std::move(done), ReadSandboxFacts));
}

void EngineInspector::InspectContainer(const ContainerId& id, Done<ContainerFacts> done) {
  Get(brief_client_, PathOf(id.value(), "/json"),
      ReadInto<ContainerFacts>(std::move(done), [others = others_](std::string_view body) {
        return ReadContainerFacts(body, others);
      }));
}

void EngineInspector::InspectImage(std::string_view reference, Done<ImageFacts> done) {
  Get(brief_client_, fmt::format("/images/{}/json", PercentEncoded(reference)),
      ReadInto<ImageFacts>(std::move(done), ReadImageFacts));
}

void EngineInspector::InspectAll(Done<Everything> done) {
  std::make_shared<Inspection>(*this, std::move(done))->Start();
}

void EngineInspector::UpdateContainer(const ContainerId& id, const ResourceChange& change,
                                      std::function<void(Status)> done) {
  auto body = MakeUpdateBody(change);
  if (!body.ok()) {
    // Answers after a call, so not inside this one.
    return Get(brief_client_, "/_ping",
               [why = body.status(), done = std::move(done)](const auto&) { done(why); });
  }
  Do("POST", PathOf(id.value(), "/update"), *std::move(body), kCallTimeout,
     [this, id, change, done = std::move(done)](const Status& status) {
       // The same change can be expressed by NanoCpus.
       if (!WantsNanoCpus(status)) return done(status);
       Do("POST", PathOf(id.value(), "/update"), *MakeUpdateBody(change, LimitedBy::kNanoCpus),
          kCallTimeout, done);
     });
}

void EngineInspector::StopContainer(const ContainerId& id, std::chrono::seconds grace,
                                    std::function<void(Status)> done) {
  Do("POST", PathOf(id.value(), fmt::format("/stop?t={}", grace.count())), "", grace + kCallTimeout,
     std::move(done));
}

void EngineInspector::StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  StopContainer(ContainerId(id.value()), kSandboxGrace, std::move(done));
}

void EngineInspector::RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  Do("DELETE", PathOf(id.value(), "?force=1&v=1"), "", kCallTimeout, std::move(done));
}

}  // namespace resmgr::docker
