/* SPDX-License-Identifier: MIT */
/*
 * raii.cpp: the library from C++17: objects that free themselves, errors that are thrown
 *
 *     c++ -std=c++17 raii.cpp $(pkg-config --cflags --libs posenc) -pthread -o raii && ./raii
 *
 * The header is C and C++. What a program adds is below: a deleter, one function that turns a status into an
 * exception, and a tensor that owns a std::vector. The rest shows two threads that share one plan, each with
 * a workspace of its own, and get the same bits; and an error.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <future>
#include <memory>
#include <posenc/posenc.h>
#include <stdexcept>
#include <type_traits>
#include <vector>

/* An object that is called as the function is. */
template <auto release> using deleter = std::integral_constant<decltype(release), release>;
using encoding                        = std::unique_ptr<posenc_encoding, deleter<posenc_encoding_free>>;
using plan                            = std::unique_ptr<posenc_plan, deleter<posenc_plan_free>>;

/* call(posenc_attend, plan, &in, &out, work): the error, which every function takes last, is thrown. */
template <class... Wanted, class... Given> void call(posenc_status (*function)(Wanted...), Given... given)
{
    posenc_error err;
    if (function(given..., &err) != POSENC_OK)
        throw std::runtime_error(err.message);
}

struct workspace : posenc_workspace {
    workspace(const plan &p, posenc_run runs)
    {
        call(posenc_workspace_create, this, p.get(), runs, nullptr);
    }
    ~workspace()
    {
        posenc_workspace_free(this);
    }
    workspace(const workspace &) = delete;
};

struct rows { /* float32 [1, heads, L, D] */
    std::vector<float> numbers;
    posenc_tensor      tensor;
    rows(std::int64_t heads, std::int64_t L, std::int64_t D) : numbers(heads * L * D)
    {
        const std::int64_t shape[] = {1, heads, L, D};
        tensor                     = posenc_tensor_contiguous(numbers.data(), POSENC_DTYPE_F32, 4, shape);
    }
    rows(const rows &) = delete; /* the tensor points to the numbers */
};

int main()
try {
    constexpr std::int64_t H = 8, G = 2, L = 100, D = 64;
    posenc_options         options = posenc_options_default();
    posenc_dims            dims{};
    dims.B = 1, dims.H = H, dims.G = G, dims.Lq = dims.Lk = L, dims.D = D, options.mask = POSENC_MASK_CAUSAL;
    posenc_encoding *e_made = nullptr;
    posenc_plan     *p_made = nullptr;
    call(posenc_encoding_create, &e_made, "rope[base=5e5]", nullptr);
    const encoding e(e_made);
    call(posenc_plan_create, &p_made, e.get(), &dims, &options);
    const plan p(p_made);
    rows       q(H, L, D), k(G, L, D), v(G, L, D), first(H, L, D), second(H, L, D);
    for (std::size_t n = 0; n < q.numbers.size(); n++)
        q.numbers[n] = std::sin(static_cast<float>(n));
    for (std::size_t n = 0; n < k.numbers.size(); n++)
        k.numbers[n] = std::cos(static_cast<float>(n)), v.numbers[n] = 1; /* weights add to 1: so does o */

    const auto attend = [&](rows &to) {
        workspace         work(p, POSENC_RUN_ATTEND);
        posenc_attend_in  in{};
        posenc_attend_out out{};
        in.size = sizeof in, in.q = q.tensor, in.k = k.tensor, in.v = v.tensor;
        out.size = sizeof out, out.o = to.tensor;
        call(posenc_attend, p.get(), &in, &out, &work);
    };
    auto other = std::async(std::launch::async, [&] { attend(second); });
    attend(first);
    other.get(); /* throws what was thrown there */
    const bool same = first.numbers == second.numbers;
    const bool ones = std::all_of(first.numbers.begin(), first.numbers.end(),
                                  [](float x) { return std::fabs(x - 1) < 1e-6f; });
    std::printf("Two threads, one plan: %s\n", same && ones ? "the same bits, and the right ones" : "wrong");
    try {
        call(posenc_encoding_create, &e_made, "ropes", nullptr);
    } catch (const std::runtime_error &error) {
        std::printf("An error: %s\n", error.what());
        return same && ones ? 0 : 1;
    }
    return 1;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
