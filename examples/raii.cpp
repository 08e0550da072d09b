/* SPDX-License-Identifier: MIT */
/*
 * raii.cpp: the library from C++17: objects that free themselves, errors that are thrown
 *
 *     c++ -std=c++17 raii.cpp $(pkg-config --cflags --libs posenc) -o raii && ./raii
 *
 * The header is C and C++. What a program adds is below: a deleter for each kind of object, one function that
 * turns a status into an exception, and a tensor that owns a std::vector. The rest shows two threads that
 * share one plan, each with a workspace of its own, and get the same bits; and an error.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <posenc/posenc.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace
{

struct deleter {
    void operator()(posenc_encoding *e) const
    {
        posenc_encoding_free(e);
    }
    void operator()(posenc_plan *p) const
    {
        posenc_plan_free(p);
    }
    void operator()(posenc_workspace *w) const
    {
        posenc_workspace_free(w);
        delete w;
    }
};
using encoding  = std::unique_ptr<posenc_encoding, deleter>;
using plan      = std::unique_ptr<posenc_plan, deleter>;
using workspace = std::unique_ptr<posenc_workspace, deleter>;

/* call(posenc_attend, plan, &in, &out, work): the error, which every function takes last, becomes an */
// exception.
template <class... Wanted, class... Given> void call(posenc_status (*function)(Wanted...), Given... given)
{
    posenc_error err;
    if (function(given..., &err) != POSENC_OK)
        throw std::runtime_error(err.message);
}

encoding make_encoding(const char *spec)
{
    posenc_encoding *e = nullptr;
    call(posenc_encoding_create, &e, spec, nullptr);
    return encoding(e);
}

plan make_plan(const encoding &e, const posenc_dims &dims, const posenc_options &options)
{
    posenc_plan *p = nullptr;
    call(posenc_plan_create, &p, e.get(), &dims, &options);
    return plan(p);
}

workspace make_workspace(const plan &p, posenc_run runs)
{
    workspace w(new posenc_workspace());
    call(posenc_workspace_create, w.get(), p.get(), runs, nullptr);
    return w;
}

/* float32 [1, heads, L, D]. */
struct rows {
    std::vector<float> numbers;
    posenc_tensor      tensor;
    rows(std::int64_t heads, std::int64_t L, std::int64_t D) : numbers(heads * L * D)
    {
        const std::int64_t shape[] = {1, heads, L, D};
        tensor                     = posenc_tensor_contiguous(numbers.data(), POSENC_DTYPE_F32, 4, shape);
    }
    rows(const rows &)            = delete;
    rows &operator=(const rows &) = delete;
};

void fill(rows &x)
{
    static std::uint32_t state = 1;
    std::generate(x.numbers.begin(), x.numbers.end(), [] {
        return static_cast<float>(static_cast<std::int32_t>(state = state * 1664525u + 1013904223u)) *
               0x1p-31f;
    });
}

int run()
{
    constexpr std::int64_t H = 8, G = 2, L = 100, D = 64;
    posenc_dims            dims{};
    dims.B = 1, dims.H = H, dims.G = G, dims.Lq = dims.Lk = L, dims.D = D;
    posenc_options options = posenc_options_default();
    options.mask           = POSENC_MASK_CAUSAL;
    const encoding e       = make_encoding("rope[base=5e5]");
    const plan     p       = make_plan(e, dims, options);

    rows q(H, L, D), k(G, L, D), v(G, L, D), first(H, L, D), second(H, L, D);
    fill(q), fill(k);
    std::fill(v.numbers.begin(), v.numbers.end(), 1.0f); /* weights add to 1: so is every output */
    const auto attend = [&](rows &to) {
        const workspace   work = make_workspace(p, POSENC_RUN_ATTEND);
        posenc_attend_in  in{};
        posenc_attend_out out{};
        in.size = sizeof in, out.size = sizeof out;
        in.q = q.tensor, in.k = k.tensor, in.v = v.tensor, out.o = to.tensor;
        call(posenc_attend, p.get(), &in, &out, work.get());
    };
    std::thread other([&] { attend(second); });
    attend(first);
    other.join();
    const bool same = first.numbers == second.numbers;
    const bool ones = std::all_of(first.numbers.begin(), first.numbers.end(),
                                  [](float x) { return std::fabs(x - 1) < 1e-6f; });
    std::printf("Two threads, one plan: %s\n", same && ones ? "the same bits, and the right ones" : "wrong");
    try {
        make_encoding("ropes");
    } catch (const std::runtime_error &error) {
        std::printf("An error: %s\n", error.what());
        return same && ones ? 0 : 1;
    }
    return 1;
}

} // namespace

int main()
{
    try {
        return run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
