// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/image_cache.h"

#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/fake_access.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ImageCacheTest : public testing::Test {
 protected:
  // The image's entry point, "" for none; nullopt: unknown image.
  std::optional<std::string> Find(const std::string& reference) {
    std::optional<std::string> found;
    int answers = 0;
    cache_.Find(reference, [&](const ImageFacts* facts) {
      ++answers;
      if (facts != nullptr) found = facts->entrypoint.empty() ? "" : facts->entrypoint[0];
    });
    runtime_.Answer();
    EXPECT_EQ(answers, 1);
    return found;
  }

  test::FakeAccess runtime_;
  ImageCache cache_{runtime_};
};

TEST_F(ImageCacheTest, OneThatIsNamedByItsDigestIsAskedForOnce) {
  for (const char* const name : {"sha256:aa", "docker.io/library/web@sha256:bb"}) {
    runtime_.asked.clear();
    runtime_.images[name].entrypoint = {"/entry"};
    EXPECT_EQ(Find(name), "/entry");
    EXPECT_EQ(Find(name), "/entry");
    EXPECT_THAT(runtime_.asked, ElementsAre("image " + std::string(name)));
  }
}

TEST_F(ImageCacheTest, ATagMayBeAnotherImageTheNextTime) {
  runtime_.images["web:1"].entrypoint = {"/old"};
  EXPECT_EQ(Find("web:1"), "/old");
  runtime_.images["web:1"].entrypoint = {"/new"};
  EXPECT_EQ(Find("web:1"), "/new");
}

TEST_F(ImageCacheTest, WhatIsNotKnownIsAskedForAgain) {
  EXPECT_EQ(Find("sha256:aa"), std::nullopt);
  runtime_.images["sha256:aa"] = {};
  EXPECT_EQ(Find("sha256:aa"), "");
  EXPECT_THAT(runtime_.asked, SizeIs(2));
}

TEST_F(ImageCacheTest, WithoutANameNothingIsAsked) {
  EXPECT_EQ(Find(""), std::nullopt);
  EXPECT_THAT(runtime_.asked, IsEmpty());
}

TEST_F(ImageCacheTest, TheOldestAreForgotten) {
  for (size_t i = 0; i <= ImageCache::kMost; ++i) {
    const std::string name = "sha256:" + std::to_string(i);
    runtime_.images[name] = {};
    Find(name);
  }
  runtime_.asked.clear();
  Find("sha256:1");
  Find("sha256:" + std::to_string(ImageCache::kMost));
  EXPECT_THAT(runtime_.asked, IsEmpty());
  Find("sha256:0");
  EXPECT_THAT(runtime_.asked, ElementsAre("image sha256:0"));
}

// Two that ask at the same time both get the facts, which are stored once.
TEST_F(ImageCacheTest, SeveralMayAskAtTheSameTime) {
  runtime_.images["sha256:aa"].entrypoint = {"/entry"};
  int known = 0;
  for (int i = 0; i < 2; ++i)
    cache_.Find("sha256:aa", [&known](const ImageFacts* facts) { known += facts != nullptr; });
  runtime_.Answer();
  EXPECT_EQ(known, 2);
  EXPECT_EQ(Find("sha256:aa"), "/entry");
}

TEST(ImageCacheEndTest, NothingIsAnsweredAfterItsEnd) {
  test::FakeAccess runtime;
  runtime.images["sha256:aa"] = {};
  auto cache = std::make_unique<ImageCache>(runtime);
  cache->Find("sha256:aa", [](const ImageFacts*) { FAIL(); });
  cache.reset();
  runtime.Answer();
}

}  // namespace
}  // namespace resmgr::nri
