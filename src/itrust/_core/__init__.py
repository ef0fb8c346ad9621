"""What every package needs, loaded when it is asked for: a wrong option needs no NumPy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust._core.arrays import (
        AnyArray,
        BoolArray,
        FloatArray,
        IntArray,
        Rng,
        as_generator,
        as_seed,
        keyed_bits,
        keyed_blocks,
        keyed_flips,
        keyed_fractions,
        plain,
        smallest_tickets,
        tickets,
    )
    from itrust._core.errors import (
        ApproximationWarning,
        Argument,
        AssumptionWarning,
        ClusterError,
        Code,
        DatasetError,
        Door,
        InputError,
        Row,
        Setting,
        Subject,
        checked_alpha,
        checked_choice,
        checked_count,
        checked_finite,
        checked_positive,
        checked_reach,
        checked_share,
        in_door_words,
        sentence,
        speaking,
    )
    from itrust._core.files import (
        MAX_JSON_BYTES,
        NotJSONError,
        TooLargeError,
        Write,
        cache_folder,
        json_text,
        strict_json,
        write_all,
        write_whole,
        writer_of,
    )
    from itrust._core.later import loaded_later
    from itrust._core.memory import free_memory
    from itrust._core.progress import (
        Advance,
        Begin,
        Where,
        progress_bar,
        progress_shown,
        progress_stages,
    )
    from itrust._core.result import Result, in_pandas
    from itrust._core.text import (
        closest,
        counted,
        cut,
        did_you_mean,
        first_line,
        is_blank,
        listed,
        printable,
        rounded,
        rounded_up,
        shown,
        shown_name,
        signed,
        signed_in,
        two_digits,
        wrapped,
    )
else:
    from itrust._core.later import loaded_later

    __getattr__ = loaded_later(__name__)
