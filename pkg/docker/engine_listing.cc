// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_listing.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/percent.h"
#include "pkg/docker/engine_facts.h"

namespace resmgr::docker {
namespace {

StatusOr<RuntimeListing::Objects> ReadListing(std::string_view body, Others others) {
  const auto all = ReadContainerList(body);
  if (!all.ok()) return Annotate(all.status(), "the Docker engine's list");
  RuntimeListing::Objects objects;
  for (const EngineContainer& container : *all) {
    const Identity identity = IdentityOf(container.labels, container.name, others);
    if (identity.kind == Identity::Kind::kSandbox) {
      SandboxFacts& facts = objects.sandboxes.emplace_back();
      facts.pod = ToPod(container, identity);
      facts.pod.qos_derived = true;  // until its inspection has the class
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
