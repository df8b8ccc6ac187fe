// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/image_needs.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "pkg/base/wire.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/image_ids.h"

namespace resmgr {
namespace {

std::string RequestOfImage(std::string_view image) {
  std::string spec;
  FieldWriter(spec).Bytes(1, image);
  std::string request;
  FieldWriter(request).Bytes(1, spec);
  return request;
}

// The texts by which a container may name the image: id, tags, digests (fields 1 to 3 of Image).
struct KnownImage {
  bool known = false;
  bool pinned = false;
  std::vector<std::string_view> names;

  bool Has(std::string_view name) const {
    const std::string_view digits = ImageIds::DigitsOf(name);
    return !name.empty() && std::ranges::any_of(names, [&](std::string_view own) {
      return own == name || (!digits.empty() && ImageIds::DigitsOf(own) == digits);
    });
  }
};

KnownImage ReadKnownImage(std::string_view reply) {
  KnownImage image;
  constexpr uint32_t kImageOfStatus = 1;
  (void)ForEachField(reply, [&image](const WireReader& field) {
    if (field.field() != kImageOfStatus || !field.is_bytes()) return true;
    image.known = true;
    return ForEachField(field.bytes(), [&image](const WireReader& part) {
      if (part.field() <= 3 && part.is_bytes()) image.names.push_back(part.bytes());
      if (part.field() == kPinnedOfImage) image.pinned = part.number() != 0;
      return true;
    });
  });
  return image;
}

// A name may mean another image now, so it is compared only if the runtime reports no id.
bool HasImage(std::string_view container, const KnownImage& image) {
  constexpr uint32_t kSpecOfContainer = 4;
  const std::string_view id = TextOfField(container, kImageIdOfContainer);
  const std::string_view ref = TextOfField(container, kRefOfContainer);
  for (const std::string_view told : {id, ref})
    if (!ImageIds::DigitsOf(told).empty()) return image.Has(told);
  return image.Has(id) || image.Has(ref) ||
         image.Has(TextOfField(TextOfField(container, kSpecOfContainer), 1));
}

bool NeedsImage(const KnownImage& image, std::string_view list) {
  if (!image.known || image.pinned) return image.pinned;
  constexpr uint32_t kListedContainer = 1;
  bool needed = false;
  (void)ForEachField(list, [&](const WireReader& field) {
    if (field.field() == kListedContainer && field.is_bytes())
      needed = needed || HasImage(field.bytes(), image);
    return true;
  });
  return needed;
}

}  // namespace

struct ImageNeeds::Round {
  struct Told {
    size_t left = 2;
    Status failure{};
    std::string status{};  // ImageStatusResponse
    std::string list{};    // ListContainersResponse
  };

  // Takes one of a runtime's answers, or its failure.
  void Take(size_t backend, const std::string& name, std::string Told::*part,
            StatusOr<std::string> reply) {
    Told& runtime = told[backend];
    if (reply.ok()) {
      runtime.*part = *std::move(reply);
    } else if (reply.status().code() != StatusCode::kUnimplemented) {
      // A runtime that lacks the method has no images or containers, and needs none.
      runtime.failure.Update(Annotate(reply.status(), fmt::format("runtime {}", name)));
    }
    if (--runtime.left == 0) End();
  }
  void End() {
    if (--left > 0) return;
    Needs needs;
    for (const Told& runtime : told) {
      if (runtime.failure.ok()) {
        needs.emplace_back(NeedsImage(ReadKnownImage(runtime.status), runtime.list));
      } else {
        needs.emplace_back(runtime.failure);
      }
    }
    done(std::move(needs));
  }

  std::vector<Told> told;
  size_t left = 0;  // runtimes that have not answered
  std::function<void(Needs)> done;
};

ImageNeeds::ImageNeeds(EventLoop& loop, h2::FlushQueue& flushes, const Backends& backends)
    : loop_(loop), backends_(backends) {
  for (const Backends::Backend& backend : backends.all()) {
    Peer peer{.runtime = std::make_unique<UnaryClient>(loop, flushes, backend.socket),
              .images = nullptr};
    if (!backend.image_socket.empty() && backend.image_socket != backend.socket)
      peer.images = std::make_unique<UnaryClient>(loop, flushes, backend.image_socket);
    peers_.push_back(std::move(peer));
  }
}

void ImageNeeds::Call(UnaryClient& client, const std::string& path, const std::string& message,
                      std::chrono::milliseconds patience, UnaryClient::Done done) {
  // If this fails, the call below reports it.
  if (!client.connected()) (void)client.Connect([](const Status&) {});
  client.Call(path, message, patience, std::move(done));
}

void ImageNeeds::Ask(std::string_view image, std::string_view package,
                     std::chrono::milliseconds patience, std::function<void(Needs)> done) {
  const auto round = std::make_shared<Round>();
  round->told.resize(peers_.size());
  round->left = peers_.size();
  round->done = std::move(done);
  const std::string request = RequestOfImage(image);
  for (size_t i = 0; i < peers_.size(); ++i) {
    const std::string& name = backends_.all()[i].name;
    if (backends_.Hangs(i)) {
      round->told[i].failure = Unavailable("runtime {}: it does not answer", name);
      loop_.Post([round] { round->End(); });
      continue;
    }
    const auto take = [round, i, &name](std::string Round::Told::*part) {
      return [round, i, &name, part](StatusOr<std::string> reply) {
        round->Take(i, name, part, std::move(reply));
      };
    };
    UnaryClient& images = peers_[i].images ? *peers_[i].images : *peers_[i].runtime;
    Call(images, fmt::format("{}.ImageService/ImageStatus", package), request, patience,
         take(&Round::Told::status));
    Call(*peers_[i].runtime, fmt::format("{}.RuntimeService/ListContainers", package), "", patience,
         take(&Round::Told::list));
  }
}

}  // namespace resmgr
