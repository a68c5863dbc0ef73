"""What a table's number rests on: which draw the print agrees with, and how far one run made again lies."""

from fednb import report


def off_print(results, printed) -> dict[str, float]:
    """By row how far its sites are from the printed ones in the best test round: the mean over sites, without sign."""
    if not results.records:
        return {}
    rows = report.comparison(results, printed, "best_test")
    rows = rows[(rows["site"] != "average") & rows["difference"].notna()]
    return rows["difference"].abs().groupby(rows["row"], sort=False).mean().to_dict()


def made_again(now, earlier) -> str:
    """In a sentence how far the same runs lie apart that were made twice, on two machines."""
    if not now.records or not earlier.records:
        return ""
    means = [
        report.selected(each.frame, "mean_of_last").groupby(["run", "seed"])["accuracy"].mean()
        for each in (now, earlier)
    ]
    apart = (means[0] - means[1]).dropna()
    deviation = ((apart**2).mean() / 2) ** 0.5
    return f"One run made again elsewhere has a standard deviation of {deviation:.1f} points ({len(apart)} pairs)."


def apart_by_seed(results, run: str, other: str) -> float:
    """The largest difference between two runs of one seed, in points of the average, with whatever flow both have."""
    chosen = report.selected(results.frame, "mean_of_last")
    means = chosen.groupby(["augmentation", "seed", "algorithm"])["accuracy"].mean().unstack()
    return float((means[run] - means[other]).abs().max())
