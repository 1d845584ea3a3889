"""The functions on which IronCalc agrees with LibreOffice.

A line is a function or operator, the kinds of its results, the smallest number of its arguments, and for each argument
the proven kinds (see `_proven_shapes`); those of the cells of a range stand behind ``|``. ``T`` stands for all kinds of
texts, ``!`` for a function that gives an error exactly where it should, ``=2`` for one that may return its second
argument, and ``*`` lets the last argument repeat.

`tests/surfaces/documents/excel/test_proven_shapes.py` makes the table.
"""

PROVEN = r"""
+ N 2 NSJIBOD0nsjibdyzFE NSJIBOD0nsjibdyzFE
- N 2 NSJIBOD0nsjibdyzFE NSJIBOD0nsjibdyzFE
* N 2 NSJIBOD0nsjibdyzFE NSJIBOD0nsjibdyzFE
/ N 2 NSJIBOD0nsjibdyzFE NSJIBDnsjibdFE
^ N 2 NSJIBOD0nsjibdyzFE S0sFE
POWER N 2 NSJIBOD0MnsjibdyzFE S0sFE
NEGATIVE N! 1 NSJI0nsjizFE
POSITIVE N! 1 NSJI0nsjizFE
% N! 1 SJI0nsjizFE
& T! 2 SJIWDYCXU0sjiwdycxuzFE SJIWDYCXU0sjiwdycxuzFE
= B! 2 NSJIBOWDYCXU0nsjibwdcxuzFE NSJIWDYCXUnsjiwdycxuzFE
<> B! 2 NSJIBOWDYCXU0nsjibwdycxuzFE NSJIWDYCXUnsjiwdycxuzFE
< B! 2 NSJI0nsjizFE NSJI0nsjizFE
> B! 2 NSJI0nsjizFE NSJI0nsjizFE
<= B! 2 NSJI0nsjizFE NSJI0nsjizFE
>= B! 2 NSJI0nsjizFE NSJI0nsjizFE
SUM N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz* *
PRODUCT N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz *
AVERAGE N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz* *
MAX N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz* *
MIN N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz* *
COUNT N! 1 NSJIBOWYCXU0nsjiwdycxuzF|nsjiwdycxuz* *
COUNTA N! 1 NSJIBOWDYCXU0nsjibwdycxuzF|nsjibwdycxu *
MEDIAN N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz *
STDEV N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
STDEV.S N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
STDEV.P N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
VAR N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
VAR.S N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
VAR.P N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
STDEVP N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
VARP N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
SUMSQ N! 1 NSJIO0nsjiwdycxuzFE|nsjiwdycxuz *
AVERAGEA N 1 NSJIBO0nsjibwdycxuzFE|nsjibwdycxuz *
MAXA N 1 NSJIBO0MnsjibwdycxuzFE|nsjibwdycxuz *
MINA N 1 NSJIBO0sjidyczFE|nsjibwdcxu *
GEOMEAN N 1 NSJIBnsjiwdycxuzFE|nsjiwdycxuz *
HARMEAN N! 1 NSJIBnsjiwxuzFE|nsjiwdycxuz *
DEVSQ N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
AVEDEV N! 1 NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
SKEW N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz *
KURT N! 1 NSJIBO0nsjiwdycxuzFE|nsjiwdycxuz *
COUNTBLANK N! 1 nsjibwdycxuz|nsjibwdycxu
ROWS N! 1 nsjibwdycxuzFE|nsjibwdycxuz
COLUMNS N! 1 nsjibwdycxuzFE|nsjibwdycxuz
COUNTIF N 2 FE|nsjiwcuz* NSJIWCU0nsjiwcu
SUMIF N 2 FE|nsjiwcuz* NSJIWCU0nsjiwcu FE|nsjibwdycxuz
AVERAGEIF N 2 FE|nsjiwcuz NSCnscFE FE|nsjibwdycxuz
COUNTIFS N 2 |nsjiwcuz NSJIWCU0nsjiwcu FE|nsjiwcuz NSJIWCU0nsjiwcu
SUMIFS N 3 FE|nsjibwdycxuz FE|nsjiwcuz NSJIWCU0nsjiwcu FE|nsjiwcuz NSJIWCU0nsjiwcu
AVERAGEIFS N! 3 FE|nsjibwdycxuz FE|nsjiwcuz NSCnscFE |nsjiwcuz NSCnscFE
MAXIFS N 3 FE|nsjibwdycxuz FE|nsjiwcuz NSJIWCU0nsjiwcu |nsjiwcuz NSJIWCU0nsjiwcu
MINIFS N 3 FE|nsjibwdycxuz FE|nsjiwcuz NSJIWCU0nsjiwcu FE|nsjiwcuz NSJIWCU0nsjiwcu
SUMPRODUCT N! 1 NSJIOWDYCXU0nsjiwdycxuzFE|nsjiwdycxuz NJBOWYCXU0nsjidcuzFE|nsjiwdycxuz
LARGE N 2 I|nsjibwdycxuz NSnsFE
SMALL N 2 SI0|nsjiwdycxuz NSnsFE
QUARTILE N 2 NSJI0nsjiFE|nsjiwdycxuz NSBOD0MnsbdyzFE
QUARTILE.INC N 2 NSJI0nsjiFE|nsjiwdycxuz NSBOD0MnsbdyzFE
PERCENTILE N 2 NSJI0nsjiFE|nsjiwdycxuz NSBOD0MnsbdyzFE
PERCENTILE.INC N 2 NSJI0nsjiFE|nsjiwdycxuz NSBOD0MnsbdyzFE
RANK N 2 NSDnsdFE |nsiwdycxuz NSJID0MnsjidyzFE
RANK.EQ N 2 NSDnsdFE |nsiwdycxuz NSJID0MnsjidyzFE
CORREL N! 2 FE|nsjiwdycxuz FE|nsjiwdycxuz
PEARSON N! 2 FE|nsjiwdycxuz FE|nsjiwdycxuz
SLOPE N! 2 FE|nsjiwdycxuz FE|nsjiwdycxuz
INTERCEPT N! 2 FE|nsjiwdycxuz FE|nsjiwdycxuz
RSQ N! 2 FE|nsjiwdycxuz FE|nsjiwdycxuz
COVARIANCE.P N 2 FE|nsji FE|nsji
COVARIANCE.S N 2 FE|nsjiw FE|nsjiz
SUMXMY2 N 2 FE|njiz FE|njiz
SUMX2MY2 N 2 FE|nji FE|nji
SUMX2PY2 N 2 FE|nji FE|nji
ABS N 1 NSJIBOD0nsjibdyzFE
INT N 1 NSJIBOD0nsjibdyzFE
SQRT N 1 NSJIBOD0nsjibdyzFE
EXP N! 1 SBO0sbyzFE
LN N 1 NSJIBDnsjibdFE
LOG10 N 1 NSJIBDnsjibdFE
SIGN N 1 NSJIBOD0nsjibdyzFE
EVEN N 1 NSJIBOD0nsjibdyzFE
ODD N 1 NSJIBOD0nsjibdyzFE
RADIANS N 1 NSJIBOD0nsjibdyzFE
DEGREES N 1 NSJIBOD0nsjibdyzFE
SIN N 1 NSJIBOD0nsjibdyzFE
COS N 1 NSJIBOD0nsjibdyzFE
TAN N 1 NSJIBOD0nsjibdyzFE
ATAN N 1 NSJIBOD0nsjibdyzFE
SINH N! 1 SBO0sbyzFE
COSH N! 1 SBO0sbyzFE
TANH N 1 NSJIBOD0nsjibdyzFE
PI N! 0
ROUND N 2 NSJIBOD0MnsjibdyzFE SJBO0MsjbyzFE
ROUNDUP N 2 NSJIBOD0MnsjibdyzFE SJBO0MsjbyzFE
ROUNDDOWN N 2 NSJIBOD0MnsjibdyzFE SJBO0MsjbyzFE
MROUND N 2 NSJID0nsjidyzFE NSJID0nsjidyzFE
TRUNC N 1 NSJIBOD0MnsjibdyzFE SJBO0MsjbyzFE
LOG N 1 NSJIBDnsjibdFE NSJIDnsjidFE
CEILING N 2 NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
FLOOR N 2 NSJIBOD0MnsjibdyzFE NSJIBDMnsjibdyFE
MOD N 2 NSJIBOD0MnsjibdyzFE SJIBDnsjibdFE
QUOTIENT N 2 NSJID0nsjidyzFE SJIDnsjidFE
ATAN2 N 2 NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
COMBIN N 2 NSJIODMnsjibdyFE NSBOD0MnsbdyzFE
PERMUT N 2 NSJIBD0nsjibdFE NSIBOD0MnsibdyzFE
BITAND N 2 NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
BITOR N 2 NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
BITXOR N 2 NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
DELTA N 2 NSJID0nsjidyzFE NSJID0MnsjidyzFE
GESTEP N 1 NSJID0nsjidyzFE NSJID0MnsjidyzFE
AND B! 1 NSJIBO0nsjibwdycxuzFE|nsjibwdycxuz *
OR B! 1 NSJIBO0Mnsjibwdycxuz|nsjibwdycxuz *
XOR B! 1 NSJIBO0MnsjibwdycxuzFE|nsjibwdycxuz *
NOT B 1 NSJIBOD0nsjibdyzFE
TRUE B! 0
FALSE B! 0
IF B=23 2 NSJIBOD0MnsjibdyzFE NSJIBOWDYCXU0MnsjibwdycxuzFE NSJIBOWDYCXU0MnsjibwdycxuzFE
IFERROR !=12 2 NSJIBOWDYCXU0nsjibwdycxuzF NSJIBOWDYCXU0MnsjibwdycxuzFE
IFNA !=12 2 NSJIBOWDYCXU0nsjibwdycxuzF NSJIBOWDYCXU0MnsjibwdycxuzFE
IFS =2 2 NSJIBDnsjibdFE NSJIBOWDYCXU0nsjibwdycxuzFE
CHOOSE =23 2 NSBnsbFE NSJIBOWDYCXU0MnsjibwdycxuzFE NSJIBOWDYCXU0MnsjibwdycxuzFE
VALUE_OF !=1 1 NSJIBOWDYCXU0nsjibwdycxuzFE
ISNUMBER B! 1 NSJIWDYCXU0nsjiwdycxuzF
ISTEXT B! 1 NSJIBOWDYCXU0nsjibwdycxuzF
ISBLANK B! 1 NSJIBOWDYCXU0nsjibwdycxuzF
ISERROR B! 1 NSJIBOWDYCXU0nsjibwdycxuzF
ISERR B! 1 NSJIBOWDYCXU0nsjibwdycxuzF
ISNA B! 1 NSJIBOWDYCXU0nsjibwdycxuzF
ISLOGICAL B! 1 NSJIBOWDYCXU0nsjibwdycxuzF
ISNONTEXT B! 1 NSJIBOWDYCXU0nsjibwdycxuzF
ISEVEN B 1 NSJI0nsjiFE
ISODD B 1 NSJI0nsjiFE
N N! 1 NSJIBOWDYCXU0nsjibwdycxuzFE
T T! 1 SJIBOWDYCXU0sjibwdycxuzFE
LEN N! 1 SJIWDYCXU0sjiwdycxuzFE
CODE N 1 SJIWDCX0sjiwdcxFE
LEFT T! 1 SJIWDYCXU0MsjiwdycxuzFE SJI0sjiFE
RIGHT T! 1 SJIWDYCXU0MsjiwdycxuzFE SJI0sjiFE
MID T! 3 SJIWDYCXU0MsjiwdycxuzFE SJIsjiFE SJI0sjiFE
UPPER T! 1 SJIWDYCX0sjiwdycxzFE
LOWER T! 1 SJIWDYCXU0sjiwdycxuzFE
PROPER T! 1 SJIWDYCXU0sjiwdycxuzFE
TRIM T! 1 SJIWDYCXU0sjiwdycxuzFE
CLEAN T! 1 SJIWDYCXU0sjiwdycxuzFE
CHAR T 1 NSIBDnsibdFE
FIND N 2 OWwFE OWXwxFE SsFE
SEARCH N! 2 WXwxFE WXwxFE SsFE
SUBSTITUTE T! 3 SJIWDYCXU0MsjiwdycxuzFE SJIBOWDYCXU0MsjibwdycxuzFE SJIWDYCXU0MsjiwdycxuzFE SJIsjiFE
REPLACE T! 4 SJIWDYCXU0MsjiwdycxuzFE SJIsjiFE SJI0sjiFE SJIWDYCXU0MsjiwdycxuzFE
REPT T 2 SJIWDYCXU0MsjiwdycxuzFE SJI0sjiFE
EXACT B! 2 SJIBOWDYCXU0MsjibwdycxuzFE SJIBOWDYCXUMsjibwdycxuzFE
CONCATENATE T! 1 SJIWDYCXU0sjiwdycxuzFE *
CONCAT T! 1 SJIWDYCXU0MsjiwdycxuzFE|sjiwdycxuz *
TEXTJOIN T 3 SJIWDYCXU0MsjiwdycxuzFE NSJIBOD0MnsjibdyzFE SJIWDCXU0MsjiwdycuzFE|sjiwdycxuz *
VALUE N 1 NSJID0nsjidyzFE
DATE N! 3 JjFE SJBO0MsjbyzFE SJBO0MsjbyzFE
TIME N! 3 SJIBO0MsjibyzFE SJIBO0MsjibyzFE SJIBO0MsjibyzFE
YEAR N 1 NSJIBDnsjibdFE
MONTH N 1 NSJIBDnsjibdFE
DAY N 1 NSJIBDnsjibdFE
WEEKDAY N 1 NSJIBDnsjibdFE NSBnsbFE
WEEKNUM N 1 JIDjidFE NSnsFE
ISOWEEKNUM N 1 NSJIBDnsjibdFE
EDATE N 2 NSJIDnsjidFE NSJID0nsjidyzFE
EOMONTH N 2 NSJIDnsjidFE NSJID0nsjidyzFE
DAYS N! 2 FE FE
DAYS360 N 2 JO0MjyzFE JO0MjyzFE NSJIBOD0MnsjibdyzFE
YEARFRAC N 2 NSJIDnsjidFE JDjdFE NSD0MnsdyzFE
DATEDIF N 3 NSJIBDnsjibdFE NIDnidFE FE
NETWORKDAYS N 2 NSJIDnsjidFE NSJIDnsjidFE
WORKDAY N 2 NSJIDnsjidFE SJI0sjiyzFE
MATCH N 3 NSJIWDCXUnsjiwdcxuFE FE|nsjiwdycxuz* O0
VLOOKUP =2 4 NSJIWCXUnsjiwcxuFE FE|nsjiwcxuz NSBnsbFE O0
HLOOKUP =2 4 SsFE FE|nsbwycu NSBnsbFE O0
INDEX =1 2 FE|nsjibwdycxuz NSBDnsbdFE NSBOD0MnsbdyzFE
PMT N 3 SJIBOD0MsjibdyzFE SJIBDsjibdFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
PV N 3 SJIBOD0MsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
FV N 3 NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE
NPER N 3 SJIBOD0MsjibdyzFE SJIBDsjibdFE NSJIBOD0MnsjibdyzFE NSIBOD0MnsibdyzFE NSJIBOD0MnsjibdyzFE
NPV N 2 SJIBOD0MsjibdyzFE NSJI0nsjiwdycxuzFE|nsjiwdycxuz *
IPMT N 4 NSJIBOD0MnsjibdyzFE BbFE SJIBsjibFE NSJIBOD0MnsjibdyzFE
PPMT N 4 SJIBOD0MsjibdyzFE IBbFE SJIBsjibFE NSJIBOD0MnsjibdyzFE
SLN N 3 NSJIBOD0MnsjibdyzFE NSJIBOD0MnsjibdyzFE NSJIBDnsjibdFE
IRR N! 1 FE
"""
ALIKE = frozenset({
    "AVERAGEIF", "AVERAGEIFS", "CORREL", "COUNTIFS", "COVARIANCE.P", "COVARIANCE.S", "INTERCEPT", "MAXIFS", "MINIFS",
    "PEARSON", "RSQ", "SLOPE", "SUMIF", "SUMIFS", "SUMPRODUCT", "SUMX2MY2", "SUMX2PY2", "SUMXMY2", "XLOOKUP",
})  # fmt: skip
"""The functions whose ranges must have the same rows and columns."""
SPILLS = {"SORT": frozenset("nsji"), "UNIQUE": frozenset("nsjiw")}
"""The functions of dynamic arrays that are proven for one column, with the kinds of its cells."""
